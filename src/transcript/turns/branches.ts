import type { OpenTurn } from './open-turn.js';
import { soFar } from './resume-point.js';

/** A prompt, or a command that may become one, and the lines that descend from it up to the next. */
export interface Branch {
  /** The uuid of the prompt. */
  readonly prompt: string | undefined;
  /** Its turn. As long as a command is undecided, its lines belong to the branch before it. */
  turn: OpenTurn | undefined;
  before: Branch | undefined;
}

/**
 * Each line of a conversation names the one before it; attachments are links in this chain too. So it is known which prompt a
 * line descends from, wherever it is in the file: two processes can work in one session, and then their lines interleave.
 */
export class Branches {
  readonly #byUuid = new Map<string, Branch>();
  #added: string[] = [];

  /** Starts a branch at the line of a prompt or of a command. */
  start(uuid: string | undefined, parent: string | undefined, turn?: OpenTurn): Branch {
    const branch = { prompt: uuid, turn, before: turn ? undefined : this.find(parent) };
    if (uuid !== undefined) this.#byUuid.set(uuid, branch);
    return branch;
  }

  /** Adds a line to the branch from which it descends. */
  add(uuid: string | undefined, parent: string | undefined): void {
    const branch = parent === undefined ? undefined : this.#byUuid.get(parent);
    if (uuid === undefined || !branch || this.#byUuid.has(uuid)) return;
    this.#byUuid.set(uuid, branch);
    this.#added.push(uuid);
  }

  /** The lines that are known now, of all branches. */
  get uuids(): Iterable<string> {
    return soFar(this.#added);
  }

  /** The branch of a turn to which a line belongs; undefined if that is not known. */
  find(uuid: string | undefined): Branch | undefined {
    return uuid === undefined ? undefined : decided(this.#byUuid.get(uuid));
  }

  /** Whether the prompt of a turn has this uuid. */
  isPrompt(uuid: string): boolean {
    const branch = this.#byUuid.get(uuid);
    return branch?.turn !== undefined && branch.prompt === uuid;
  }

  /** Whether a line descends from the start of a branch, as far as that is known. */
  mayDescend(parent: string | undefined, branch: Branch): boolean {
    return branch === ((parent !== undefined && this.#byUuid.get(parent)) || branch);
  }

  /** Makes a command the prompt of a turn. */
  decide(command: Branch, turn: OpenTurn): void {
    command.turn = turn;
    command.before = undefined;
  }

  /** Makes prompts, and what descends from them, part of another turn. */
  move(prompts: readonly { readonly uuid: string | undefined }[], turn: OpenTurn): void {
    for (const { uuid } of prompts) {
      const branch = uuid === undefined ? undefined : this.#byUuid.get(uuid);
      if (branch) branch.turn = turn;
    }
  }

  /** Forgets the lines of all turns but these. */
  keep(turns: ReadonlySet<OpenTurn>): void {
    for (const [uuid, branch] of this.#byUuid) {
      const turn = decided(branch)?.turn;
      if (!turn || turns.has(turn)) continue;
      if (branch.turn) this.#byUuid.delete(uuid);
      else branch.before = undefined;
    }
    this.#added = [...this.#byUuid.keys()];
  }
}

function decided(branch: Branch | undefined): Branch | undefined {
  let found = branch;
  while (found && !found.turn) found = found.before;
  return found;
}
