import {
  type Change,
  changeSession,
  divideChange,
  type Entry,
  joinEntry,
  mergeChanges,
  NO_PROGRESS,
  newSession,
  type Progress,
  type Session,
} from './entry.js';
import type { Lock } from './lock.js';
import type { SessionState } from './store.js';

/** Reads the real state and keeps changes in memory: nothing is written. */
export class DryRunState implements SessionState {
  readonly #state: SessionState;
  readonly #sessions = new Map<string, Session>();
  /** By session and destination. */
  readonly #progress = new Map<string, Map<string, Progress>>();

  constructor(state: SessionState) {
    this.#state = state;
  }

  read(sessionId: string, destination: string): Entry | undefined {
    const session = this.readSession(sessionId);
    return session && joinEntry(session, this.#readProgressAt(sessionId, destination));
  }

  readSession(sessionId: string): Session | undefined {
    return this.#sessions.get(sessionId) ?? this.#state.readSession(sessionId);
  }

  readProgress(sessionId: string): Map<string, Progress> {
    return new Map([...this.#state.readProgress(sessionId), ...(this.#progress.get(sessionId) ?? [])]);
  }

  async update(sessionId: string, change: Change, destination?: string): Promise<Session> {
    const { session, progress } = divideChange(change);
    const changed = changeSession(this.readSession(sessionId) ?? newSession(sessionId), session);
    this.#sessions.set(sessionId, changed);
    if (destination === undefined) return changed;
    const after = mergeChanges(this.#readProgressAt(sessionId, destination) ?? NO_PROGRESS, progress);
    this.#progress.set(sessionId, new Map(this.#progress.get(sessionId)).set(destination, after));
    return changed;
  }

  sessionsWithFirst(first: string, sessionId: string): Session[] {
    const stored = this.#state.sessionsWithFirst(first, sessionId).map((session) => [session.id, session] as const);
    const all = new Map([...stored, ...this.#sessions]).values();
    return [...all].filter((session) => session.id !== sessionId && session.first === first);
  }

  isMistaken(destination: string, sessionId: string): boolean {
    return this.#state.isMistaken(destination, sessionId);
  }

  acknowledge(): void {}

  checkWritable(): void {}

  isUrgent(): boolean {
    return false;
  }

  markTried(): void {}

  readCheckpoints(): [] {
    return [];
  }

  keepCheckpoints(): void {}

  async lock(): Promise<Lock> {
    return { isHeld: () => true, release() {} };
  }

  #readProgressAt(sessionId: string, destination: string): Progress | undefined {
    const changed = this.#progress.get(sessionId)?.get(destination);
    const stored = changed ? undefined : this.#state.read(sessionId, destination);
    return changed ?? (stored && { ...NO_PROGRESS, ...divideChange(stored).progress });
  }
}
