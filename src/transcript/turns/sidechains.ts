import type { Line } from '../file/line.js';
import type { Position } from '../file/reader.js';
import type { IdRegister } from './id-register.js';
import { type AgentThread, type SessionFacts, type Turn, toThread } from './turn.js';

/** A line that may be a link of the parent chain. */
export type ChainLine = Exclude<Line, { kind: 'request' | 'unreadable' }>;

export interface GroupingStart extends Position {
  /** What the lines before have told. */
  readonly session: SessionFacts;
  readonly sessionId: string;
  /** A subagent's lines are marked as such, its prompt may look like the harness's, and copies are no matter there. */
  readonly thread: 'main' | 'agent';
  /** How many turns came before. */
  readonly turnCount: number;
  /** The time of lines that stand before any line that has one. */
  readonly time: () => number;
  /** Shared by the threads of one file. */
  readonly ids?: IdRegister;
}

/** What groups the lines of one thread. */
interface Grouper {
  push(line: Line): Turn | undefined;
  open(): Turn | undefined;
}

/** What one subagent wrote into the main file. */
interface Sidechain {
  readonly key: string;
  readonly grouper: Grouper;
  readonly turns: Turn[];
}

/** Subagents whose lines stand in the main file: those of each are a chain of their own, which begins without a parent. */
export class Sidechains {
  readonly #begin: (start: GroupingStart) => Grouper;
  readonly #byLine = new Map<string, Sidechain>();

  constructor(begin: (start: GroupingStart) => Grouper) {
    this.#begin = begin;
  }

  /** Whether the line was taken: not where it has no name, or repeats one. */
  push(line: ChainLine, main: GroupingStart): boolean {
    const { uuid, parentUuid } = line.fields;
    if (uuid === undefined || this.#byLine.has(uuid)) return false;
    const { number, start: offset } = line.location;
    const chain = (parentUuid !== undefined && this.#byLine.get(parentUuid)) || {
      key: uuid,
      grouper: this.#begin({ ...main, line: number, offset, turnCount: 0, thread: 'agent' }),
      turns: [],
    };
    this.#byLine.set(uuid, chain);
    const ended = chain.grouper.push(line);
    if (ended) chain.turns.push(ended);
    return true;
  }

  threads(): AgentThread[] {
    return [...new Set(this.#byLine.values())].flatMap(({ key, grouper, turns }) => {
      const open = grouper.open();
      return toThread(key, undefined, open ? [...turns, open] : turns) ?? [];
    });
  }

  clear(): void {
    this.#byLine.clear();
  }
}
