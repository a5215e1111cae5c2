import { type Entry, mergeEntry, NEW_ENTRY, type SessionEntry, withProgressAt } from './entry.js';
import type { Lock } from './lock.js';
import type { SessionState } from './store.js';

/** Reads the real state and keeps changes in memory: nothing is written. */
export class DryRunState implements SessionState {
  readonly #state: SessionState;
  readonly #changed = new Map<string, Entry | undefined>();

  constructor(state: SessionState) {
    this.#state = state;
  }

  read(sessionId: string, destination?: string): Entry | undefined {
    const entry = this.#changed.has(sessionId) ? this.#changed.get(sessionId) : this.#state.read(sessionId);
    return entry && destination !== undefined ? withProgressAt(entry, destination) : entry;
  }

  async update(sessionId: string, change: Partial<Entry>, destination?: string): Promise<void> {
    const entry = this.read(sessionId) ?? NEW_ENTRY;
    const there = destination === undefined ? entry : withProgressAt(entry, destination);
    this.#changed.set(sessionId, mergeEntry(there, change));
  }

  async remove(sessionIds: readonly string[]): Promise<void> {
    for (const sessionId of sessionIds) this.#changed.set(sessionId, undefined);
  }

  sessionsWithFirst(first: string, sessionId: string): SessionEntry[] {
    const stored: [string, Entry | undefined][] = this.#state.sessionsWithFirst(first, sessionId);
    return [...new Map([...stored, ...this.#changed])].flatMap(([id, entry]): SessionEntry[] =>
      id !== sessionId && entry?.first === first ? [[id, entry]] : [],
    );
  }

  sessionsWithAgent(agentId: string, destination: string): SessionEntry[] {
    const stored: [string, Entry | undefined][] = this.#state.sessionsWithAgent(agentId, destination);
    return [...new Map([...stored, ...this.#changed])].flatMap(([id, entry]): SessionEntry[] => {
      const there = entry && withProgressAt(entry, destination);
      return there?.agents?.[agentId] ? [[id, there]] : [];
    });
  }

  isMistaken(destination: string, entry: Entry): boolean {
    return this.#state.isMistaken(destination, entry);
  }

  async checkWritable(): Promise<void> {}

  readCheckpoints(): [] {
    return [];
  }

  keepCheckpoints(): void {}

  async lock(): Promise<Lock> {
    return { isHeld: () => true, release() {} };
  }
}
