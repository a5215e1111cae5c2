import type { ChainLine, Line, UserLine } from '../file/line.js';
import type { Position } from '../file/reader.js';
import { type ClassifiedLine, type ConversationLine, classifyLine } from './classify-line.js';
import { OpenTurn } from './open-turn.js';
import { ThreadContext, type ThreadStart } from './thread-context.js';
import { type Turn, toThread } from './turn.js';

/** Groups the lines of a thread into turns: a turn starts at a prompt and ends before the next one. */
export class TurnGrouper {
  readonly #thread: ThreadContext;
  #turnCount: number;
  #turn: OpenTurn;
  /** Subagents whose lines are in the main file, by line: those of each form a chain, whose first has no parent. */
  readonly #sidechains = new Map<string, { key: string; grouper: TurnGrouper; turns: Turn[] }>();
  /** After the last line that belongs to a turn, or to a prompt that was dropped. */
  #nextStart: Position;
  /** A command, until the lines after it show whether it was a prompt. */
  #undecidedCommand: UserLine | undefined;

  constructor(start: ThreadStart) {
    this.#thread = new ThreadContext(start);
    this.#turnCount = start.turnCount;
    this.#nextStart = { line: start.line, offset: start.offset };
    this.#turn = new OpenTurn(this.#thread, this.#nextStart, []);
  }

  /** Takes the next line. Returns the turn that it ends, if that turn counts. */
  push(line: Line): Turn | undefined {
    if (line.kind === 'request') this.#thread.addRequest(line);
    if (line.kind === 'request' || line.kind === 'unreadable') return undefined;
    if (line.fields.isSidechain && !this.#thread.isAgent) return this.#addSidechainLine(line);
    this.#thread.addToChain(line);
    if (line.kind !== 'other') return this.#addConversationLine(line);
    if (this.#turn.addSessionFacts(line)) this.#claim(line);
    return undefined;
  }

  /** The last turn, as far as it has come; undefined if it does not count yet. */
  open(): Turn | undefined {
    if (!this.#turn.counts) return undefined;
    const chains = [...new Set(this.#sidechains.values())];
    const threads = chains.flatMap(({ key, grouper, turns }) => toThread([...turns, grouper.open()], key) ?? []);
    return this.#turn.toTurn(this.#turnCount + 1, threads);
  }

  #addSidechainLine(line: ChainLine): undefined {
    const { uuid, parentUuid } = line.fields;
    // A line can be written twice.
    if (this.#turn.prompts.length === 0 || uuid === undefined || this.#sidechains.has(uuid)) return;
    const { start, idOwners } = this.#thread;
    const { number, start: offset } = line.location;
    const chain = (parentUuid !== undefined && this.#sidechains.get(parentUuid)) || {
      key: uuid,
      grouper: new TurnGrouper({ ...start, idOwners, line: number, offset, turnCount: 0, thread: 'agent' }),
      turns: [],
    };
    this.#sidechains.set(uuid, chain);
    const ended = chain.grouper.push(line);
    if (ended) chain.turns.push(ended);
    this.#claim(line);
  }

  #addConversationLine(line: ConversationLine): Turn | undefined {
    this.#thread.lastTime = line.at ?? this.#thread.lastTime;
    const classified = this.#classify(line);
    const isNudge = classified.role === 'note' && classified.note.kind === 'nudge';
    if (isNudge || classified.role === 'turn-end') this.#turn.hasEnded = true;
    const ended = this.#findTurn(classified);
    if (this.#turn.add(classified, line)) this.#claim(line);
    return ended;
  }

  /** The prompt of a skill that runs as an agent is marked as one of Claude Code's own messages. */
  #classify(line: ConversationLine): ClassifiedLine {
    const classified = classifyLine(line);
    const isFirst = this.#turnCount === 0 && this.#turn.prompts.length === 0;
    const isMeta = classified.role === 'meta' || classified.role === 'skill-body';
    return isMeta && isFirst && this.#thread.isAgent ? { role: 'prompt', line: classified.line } : classified;
  }

  /** Makes the turn to which a line belongs the current one. Returns the turn that ended, if it counts. */
  #findTurn(classified: ClassifiedLine): Turn | undefined {
    const command = impliesPrompt(classified) ? this.#undecidedCommand : undefined;
    if (command || classified.role === 'command-output') this.#undecidedCommand = undefined;
    const ended = command && this.#startOrJoin(command);
    if (classified.role === 'prompt') return this.#startOrJoin(classified.line) ?? ended;
    if (classified.role === 'command') this.#undecidedCommand = classified.line;
    // In a torn agent file the prompt can be missing; what the agent did still counts.
    if (classified.role === 'response' && this.#thread.isAgent && this.#turn.prompts.length === 0)
      this.#turn.addPrompt({ ...classified.line, kind: 'user', content: '', fields: {} });
    return ended;
  }

  /** A prompt starts a turn, or joins one that consists of nothing but prompts. */
  #startOrJoin(line: UserLine): Turn | undefined {
    const { uuid } = line.fields;
    const isInTurn = this.#turn.prompts.some((prompt) => prompt.uuid === uuid);
    if (uuid !== undefined && (isInTurn || this.#thread.seen.has(uuid))) return undefined;
    const ended = this.#turn.isUnanswered ? this.#dropRetracted(line) : this.#endTurn();
    this.#turn.addPrompt(line);
    this.#claim(line);
    return ended;
  }

  /**
   * A prompt from which the next one does not descend was retracted. A copied prompt that was never answered is not part
   * of a turn of this session.
   */
  #dropRetracted(next: UserLine): undefined {
    const { prompts } = this.#turn;
    const uuids = prompts.map(({ uuid }) => uuid);
    const ancestors = prompts.slice(0, this.#thread.findAncestor(next.fields.parentUuid, uuids) + 1);
    const isCopied = this.#thread.isCopied(next);
    const kept = ancestors.filter(({ copied }) => copied === isCopied);
    if (kept.length < prompts.length) this.#turn.keepPrompts(kept, this.#nextStart);
  }

  #endTurn(): Turn | undefined {
    const turn = this.#turn;
    const ended = this.open();
    if (ended) this.#turnCount += 1;
    turn.close();
    this.#thread.forgetBefore(this.#nextStart.line);
    this.#sidechains.clear();
    this.#turn = new OpenTurn(this.#thread, this.#nextStart, ended ? [] : turn.notesForNextTurn);
    return ended;
  }

  #claim(line: ChainLine): void {
    const { number, end } = line.location;
    this.#turn.claim(line);
    if (number >= this.#nextStart.line) this.#nextStart = { line: number + 1, offset: end };
  }
}

/** Whether the line would not come after a built-in command, so that a command before it was a prompt. */
function impliesPrompt(classified: ClassifiedLine): boolean {
  if (classified.role === 'meta') return classified.media.length > 0;
  // A command can have asked for the compaction.
  if (classified.role === 'note') return classified.note.kind !== 'compaction';
  return ['prompt', 'command', 'response', 'skill-body', 'attached-image'].includes(classified.role);
}
