import type { ChainLine, Line } from '../file/line.js';
import type { ThreadStart } from './thread-context.js';
import { type AgentThread, type Turn, toThread } from './turn.js';

type CreateGrouper = (start: ThreadStart) => { push(line: Line): Turn | undefined; open(): Turn | undefined };

/** What one subagent wrote into the main file. */
interface Sidechain {
  readonly key: string;
  readonly grouper: ReturnType<CreateGrouper>;
  readonly turns: Turn[];
}

/** Subagents whose lines are in the main file. The lines of each form a chain of their own, whose first has no parent. */
export class Sidechains {
  readonly #createGrouper: CreateGrouper;
  readonly #byLine = new Map<string, Sidechain>();

  constructor(createGrouper: CreateGrouper) {
    this.#createGrouper = createGrouper;
  }

  /** Returns whether the line was taken: it is not if it has no uuid, or one that came before. */
  push(line: ChainLine, main: ThreadStart): boolean {
    const { uuid, parentUuid } = line.fields;
    if (uuid === undefined || this.#byLine.has(uuid)) return false;
    const { number, start: offset } = line.location;
    const chain = (parentUuid !== undefined && this.#byLine.get(parentUuid)) || {
      key: uuid,
      grouper: this.#createGrouper({ ...main, line: number, offset, turnCount: 0, thread: 'agent' }),
      turns: [],
    };
    this.#byLine.set(uuid, chain);
    const ended = chain.grouper.push(line);
    if (ended) chain.turns.push(ended);
    return true;
  }

  threads(): AgentThread[] {
    return [...new Set(this.#byLine.values())].flatMap(
      ({ key, grouper, turns }) => toThread(key, undefined, [...turns, grouper.open()]) ?? [],
    );
  }

  clear(): void {
    this.#byLine.clear();
  }
}
