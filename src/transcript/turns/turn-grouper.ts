import { hasToolUse, listResultIds } from '../file/content.js';
import type { AssistantLine, ChainLine, Line, UserLine } from '../file/line.js';
import type { Position } from '../file/reader.js';
import { type Branch, Branches } from './branches.js';
import { type ClassifiedLine, type ConversationLine, classifyLine } from './classify-line.js';
import { NOTE_KINDS } from './note-kinds.js';
import { OpenTurn } from './open-turn.js';
import { type ResumePoint, type SettledPart, soFar, type TurnSoFar } from './resume-point.js';
import { markAccountAsShared } from './session-facts.js';
import { ThreadContext, type ThreadStart } from './thread-context.js';
import { FILE_BEGINS, IS_ELSEWHERE, type Note, type Turn, type TurnGroup, toThread } from './turn.js';

/**
 * Groups the lines of a thread into turns: a turn starts at a prompt and ends before the next one. If two processes work in one
 * session, their turns interleave: then a line belongs to the prompt from which it descends, and the turns end together.
 */
export class TurnGrouper {
  readonly #thread: ThreadContext;
  readonly #branches = new Branches();
  #turnCount: number;
  /** The turn of the last prompt. Lines belong to it unless they descend from another one's prompt. */
  #turn: OpenTurn;
  /** Earlier turns that have not ended yet, and prompts that will be turns if they are answered after all. */
  #earlier: OpenTurn[] = [];
  /** The turns that ended last: one of their responses may go on after the prompt, which was typed while it was written. */
  #lastEnded: readonly OpenTurn[] = [];
  /** Ended turns by their calls without a result: a call can be rejected turns later. */
  readonly #unanswered = new Map<string, OpenTurn>();
  /** Subagents whose lines are in the main file, by line: those of each form a chain, whose first has no parent. */
  readonly #sidechains = new Map<string, { turn: OpenTurn; key: string; grouper: TurnGrouper; turns: Turn[] }>();
  /** After the last line that belongs to a turn, or to a prompt that was dropped. */
  #nextStart: Position;
  /** A command, until the lines after it show whether it was a prompt. */
  #undecidedCommand: { readonly line: UserLine; readonly branch: Branch } | undefined;

  constructor(start: ThreadStart) {
    this.#thread = new ThreadContext(start);
    this.#turnCount = start.turnCount;
    this.#nextStart = { line: start.line, offset: start.offset };
    this.#turn = this.#startTurn([]);
  }

  /** Takes the next line. Returns the turns that it ends, if they count. */
  push(line: Line): TurnGroup | undefined {
    if (line.kind === 'request') this.#thread.addRequest(line);
    if (line.kind === 'request' || line.kind === 'unreadable') return undefined;
    if (line.fields.isSidechain && !this.#thread.isAgent) return this.#addSidechainLine(line);
    const ended = line.kind === 'other' ? this.#addOtherLine(line) : this.#addConversationLine(line);
    this.#branches.add(line.fields.uuid, parentOf(line));
    return ended;
  }

  /** The turns that have not ended, as far as they have come; undefined if none of them counts yet. */
  open(): TurnGroup | undefined {
    const open = [...this.#earlier, this.#turn];
    return this.#toGroup(
      open.filter(({ counts }) => counts),
      open.filter(({ prompts }) => prompts.length > 0),
    );
  }

  /**
   * What is final of the open turn, if a response begins with this line; nothing while its lines can still move.
   */
  settledBefore(line: Line): SettledPart | undefined {
    if (line.kind !== 'assistant' || line.fields.isSidechain || this.#mayMove) return undefined;
    const settled = this.#turn.settledBefore(line);
    const { uuids } = this.#branches;
    return settled && { ...settled, drop: () => ({ ...settled.drop(), uuids, seen: soFar(this.#thread.seen) }) };
  }

  /** The open turn as far as it has come; undefined if it does not count yet, or while its lines can still move. */
  soFar(): TurnSoFar | undefined {
    return this.#mayMove ? undefined : this.#turn.soFar();
  }

  /** Whether there is a prompt that is not answered yet. */
  get isAnswerExpected(): boolean {
    return [...this.#earlier, this.#turn].some(({ prompts, counts }) => prompts.length > 0 && !counts);
  }

  /** Where the first prompt begins that no turn has answered, of those after all turns; infinity if there is none. */
  get nextPromptAt(): number {
    const all = [...this.#earlier, this.#turn].filter(({ prompts }) => prompts.length > 0);
    const last = Math.max(-1, ...all.filter(({ counts }) => counts).map(({ from }) => from.offset));
    const later = all.filter(({ from, counts }) => !counts && from.offset > last);
    return Math.min(Number.POSITIVE_INFINITY, ...later.map(({ from }) => from.offset));
  }

  /** Whether the open turn is that of the point, which no response has been read of yet. */
  canResume({ key }: ResumePoint): boolean {
    const isAlone = this.#earlier.length === 0 && !this.#undecidedCommand && this.#sidechains.size === 0;
    return isAlone && this.#turn.prompts.length > 0 && this.#turn.key === key && this.#turn.responses.length === 0;
  }

  /** Goes on at the point, as if all lines up to there had been read. */
  resume(point: ResumePoint, waiting: Iterable<Line>): void {
    this.#turn.resume(point, waiting);
    for (const uuid of point.uuids) this.#branches.add(uuid, this.#turn.prompts[0]?.uuid);
    for (const uuid of point.seen) this.#thread.seen.add(uuid);
    this.#turnCount = point.number;
    this.#nextStart = point.to;
  }

  /** Whether lines can move: those of interleaved turns, of agents in the main file, and after a command that may be a prompt. */
  get #mayMove(): boolean {
    const hasSidechain = [...this.#sidechains.values()].some(({ turn }) => turn === this.#turn);
    return this.#earlier.length > 0 || this.#undecidedCommand !== undefined || hasSidechain;
  }

  #addSidechainLine(line: ChainLine): undefined {
    const { uuid, parentUuid } = line.fields;
    // A line can be written twice.
    if (uuid === undefined || this.#sidechains.has(uuid)) return;
    if (line.kind === 'assistant') this.#startWithoutPrompt(line);
    const { start, idOwners } = this.#thread;
    const { number, start: offset } = line.location;
    const chain = (parentUuid !== undefined && this.#sidechains.get(parentUuid)) || {
      turn: this.#turn,
      key: uuid,
      grouper: new TurnGrouper({ ...start, idOwners, line: number, offset, turnCount: 0, thread: 'agent' }),
      turns: [],
    };
    this.#sidechains.set(uuid, chain);
    chain.turns.push(...(chain.grouper.push(line)?.turns ?? []));
    chain.turn.hasSidechain ||= line.kind === 'assistant';
    this.#claim(line, chain.turn);
    this.#countTurn(chain.turn, line);
  }

  #countTurn(turn: OpenTurn, line: ChainLine): void {
    if (!turn.counts || turn.number !== undefined) return;
    this.#turnCount += 1;
    turn.count(this.#turnCount, line);
  }

  #addOtherLine(line: Extract<Line, { kind: 'other' }>): undefined {
    const responses = () => [...this.#earlier, this.#turn].flatMap((turn) => turn.responses);
    if (this.#turn.addSessionFacts(line, responses)) this.#claim(line, this.#turn);
  }

  #addConversationLine(line: ConversationLine): TurnGroup | undefined {
    this.#thread.lastTime = line.at ?? this.#thread.lastTime;
    const classified = this.#classify(line);
    const ended = this.#startTurnIfPrompt(classified, parentOf(line));
    const turn = this.#findTurn(line, classified);
    const isEnd = this.#isEnd(classified, line);
    if (isEnd) turn.end(line);
    if (classified.role === 'response') this.#splitUnanswered(turn, line);
    if (classified.role === 'note' && classified.note.kind === 'interrupt') this.#leadToQueued(turn, line);
    const isPart = turn.add(classified, line);
    if (isPart || (isEnd && turn !== this.#turn)) this.#claim(line, turn);
    if (isPart && turn !== this.#turn) this.#thread.session = markAccountAsShared(this.#thread.session);
    this.#countTurn(turn, line);
    return ended;
  }

  /** The last line of an earlier turn can come after the next prompt, of another process. */
  #isEnd(classified: ClassifiedLine, line: ConversationLine): boolean {
    if (classified.role === 'note' && classified.note.kind === 'nudge') return true;
    const parent = parentOf(line);
    return classified.role === 'turn-end' && (parent === undefined || this.#branches.find(parent) !== undefined);
  }

  /** The prompt of a skill that runs as an agent is marked as one of Claude Code's own messages. */
  #classify(line: ConversationLine): ClassifiedLine {
    const classified = classifyLine(line);
    const isFirst = this.#turnCount === 0 && this.#turn.prompts.length === 0;
    const isMeta = classified.role === 'meta' || classified.role === 'skill-body';
    return isMeta && isFirst && this.#thread.isAgent ? { role: 'prompt', line: classified.line } : classified;
  }

  /** Returns the turns that end before the prompt, if they count. */
  #startTurnIfPrompt(classified: ClassifiedLine, parent: string | undefined): TurnGroup | undefined {
    const undecided = this.#undecidedCommand;
    const isNext = undecided !== undefined && this.#branches.mayDescend(parent, undecided.branch);
    const command = isNext && impliesPrompt(classified) ? undecided : undefined;
    if (command || (isNext && classified.role === 'command-output')) this.#undecidedCommand = undefined;
    const ended = command && this.#startOrJoin(command.line, command.branch);
    if (classified.role === 'prompt') return this.#startOrJoin(classified.line) ?? ended;
    if (classified.role === 'command') {
      const { line } = classified;
      this.#undecidedCommand = { line, branch: this.#branches.start(line.fields.uuid, parentOf(line)) };
    }
    if (classified.role !== 'response') return ended;
    return this.#startWithoutPrompt(classified.line) ?? ended;
  }

  /**
   * In a torn agent file the prompt can be missing, and a session's file can begin in the middle of a turn. An answer in a copied turn
   * that the other session does not have is this one's.
   */
  #startWithoutPrompt(line: AssistantLine): TurnGroup | undefined {
    const { message, isApiErrorMessage, cwd, gitBranch } = line.fields;
    const fields = { cwd, gitBranch };
    const prompt = (content: string): UserLine => ({ ...line, kind: 'user', content, fields });
    if (this.#thread.isAgent) {
      if (this.#turn.prompts.length === 0) this.#turn.addPrompt({ ...prompt(''), fields: {} });
      return undefined;
    }
    if (message?.model === '<synthetic>' || isApiErrorMessage) return undefined;
    if (this.#turn.prompts.length === 0) {
      if (this.#turnCount === 0 && this.#earlier.length === 0) this.#turn.addPrompt(prompt(FILE_BEGINS));
      return undefined;
    }
    if (line.fields.isSidechain || !this.#turn.isHeldElsewhere || this.#thread.isCopied(line)) return undefined;
    if (this.#thread.isResponseElsewhere(line) && !hasToolUse(line.content)) return undefined;
    const ended = this.#endTurns(prompt(IS_ELSEWHERE));
    this.#turn.addPrompt(prompt(IS_ELSEWHERE));
    this.#branches.start(line.fields.uuid, undefined, this.#turn);
    return ended;
  }

  /** The open turn to which a line belongs, which is not always the last that has begun. */
  #findTurn(line: ConversationLine, classified: ClassifiedLine): OpenTurn {
    const reopened = this.#reopen(classified);
    if (reopened) return reopened;
    const isFirst = classified.role === 'prompt' || this.#turn.prompts[0]?.line === line.location.number;
    if (this.#earlier.length === 0 || isFirst) return this.#turn;
    const open = [...this.#earlier, this.#turn];
    const byCall = classified.role === 'tool-results' && open.find((turn) => turn.hasCallOf(classified.line));
    const byChain = this.#branches.find(parentOf(line))?.turn;
    const byPromptId = line.kind === 'user' && open.find((turn) => turn.hasPromptId(line.fields.promptId));
    return byCall || (byChain && open.includes(byChain) && byChain) || byPromptId || this.#turn;
  }

  /** A turn that goes on with this line after a later prompt. If it has ended, it ends again with the turn that has begun since. */
  #reopen(classified: ClassifiedLine): OpenTurn | undefined {
    const turn = this.#findContinued(classified);
    if (classified.role === 'response' && !turn) this.#lastEnded = [];
    if (turn && !this.#earlier.includes(turn)) this.#earlier.push(turn);
    return turn;
  }

  #findContinued(classified: ClassifiedLine): OpenTurn | undefined {
    if (this.#thread.isAgent) return undefined;
    if (classified.role === 'response') {
      const { line } = classified;
      return [...this.#earlier, ...this.#lastEnded].find((turn) => turn.isContinuedBy(line));
    }
    if (classified.role !== 'tool-results' || this.#unanswered.size === 0) return undefined;
    const ids = listResultIds(classified.line.content);
    return ids.map((id) => this.#unanswered.get(id)).find((turn) => turn !== undefined);
  }

  /** A prompt starts a turn, or joins one that consists of nothing but prompts. */
  #startOrJoin(line: UserLine, branch?: Branch): TurnGroup | undefined {
    const { uuid } = line.fields;
    if (uuid !== undefined && (this.#branches.isPrompt(uuid) || this.#thread.seen.has(uuid))) return undefined;
    const parent = this.#branches.find(parentOf(line));
    if (parent?.turn?.isUnanswered) this.#makeLast(parent.turn);
    const followed = parentOf(line) === undefined ? this.#turn : parent?.turn;
    if (followed) followed.isFollowed = true;
    const ended = this.#turn.isUnanswered ? this.#setRetractedAside(line, parent) : this.#endTurns(line);
    this.#turn.addPrompt(line);
    if (line.fields.promptSource === 'queued') this.#turn.queuedIn = parent?.turn;
    if (branch) this.#branches.decide(branch, this.#turn);
    else this.#branches.start(uuid, undefined, this.#turn);
    this.#claim(line, this.#turn);
    return ended;
  }

  /**
   * A prompt from which the next one does not descend was retracted, or is one of another process that has not answered it yet.
   * A copied prompt that was never answered is not part of a turn of this session.
   */
  #setRetractedAside(next: UserLine, parent: Branch | undefined): undefined {
    const { prompts } = this.#turn;
    const place = prompts.findLastIndex(({ uuid }) => uuid !== undefined && uuid === parent?.prompt);
    const isCopied = this.#thread.isCopied(next);
    const kept = prompts.slice(0, place + 1).filter(({ copied }) => copied === isCopied);
    const retracted = prompts.slice(place + 1).filter(({ copied }) => !copied);
    this.#setAside(this.#turn, retracted);
    if (kept.length < prompts.length) this.#turn.keepPrompts(kept, this.#nextStart);
  }

  /** An answer to one of several prompts does not answer those after it: another process has given them. */
  #splitUnanswered(turn: OpenTurn, line: ConversationLine): void {
    const { prompts } = turn;
    if (prompts.length < 2 || !turn.isUnanswered || this.#thread.isAgent) return;
    const branch = this.#branches.find(parentOf(line));
    const place = prompts.findIndex(({ uuid }) => uuid !== undefined && uuid === branch?.prompt);
    if (place < 0 || place === prompts.length - 1) return;
    this.#setAside(turn, prompts.slice(place + 1));
    turn.keepPrompts(prompts.slice(0, place + 1), this.#nextStart);
  }

  /** After an interrupt, Claude Code answers the prompt that was queued. The answer descends from the interrupt, not from its prompt. */
  #leadToQueued(interrupted: OpenTurn, line: ConversationLine): void {
    const open = [...this.#earlier, this.#turn];
    const next = open.find((turn) => turn.queuedIn === interrupted && turn.isUnanswered);
    if (next) this.#branches.add(line.fields.uuid, next.prompts[0]?.uuid);
  }

  #setAside(turn: OpenTurn, prompts: OpenTurn['prompts']): void {
    if (prompts.length === 0 || this.#thread.isAgent) return;
    const ownTurn = turn.splitOff(prompts);
    this.#branches.move(prompts, ownTurn);
    this.#earlier.push(ownTurn);
  }

  #makeLast(turn: OpenTurn): void {
    if (turn === this.#turn || !this.#earlier.includes(turn)) return;
    this.#earlier = [...this.#earlier.filter((each) => each !== turn), this.#turn];
    this.#turn = turn;
  }

  /** Ends all turns that count, unless lines of one of them are still expected. */
  #endTurns(next: UserLine): TurnGroup | undefined {
    const time = next.at ?? this.#thread.lastTime ?? 0;
    const isExpected = (turn: OpenTurn) => !this.#thread.isAgent && turn.isExpectedAt(time);
    const notes = this.#turn.counts ? [] : this.#turn.takeNotes();
    const open = [...this.#earlier, this.#turn];
    const counting = open.filter(({ counts }) => counts);
    const unanswered = open.filter((turn) => !turn.counts && isExpected(turn));
    const ended = counting.some(isExpected) ? [] : counting;
    const group = this.#toGroup(ended, [...unanswered, ...ended]);
    for (const turn of ended) this.#close(turn);
    if (ended.length > 0) this.#lastEnded = ended;
    const kept = new Set([...unanswered, ...(ended.length > 0 ? [] : counting)]);
    this.#earlier = open.filter((turn) => kept.has(turn));
    if (this.#earlier.length < open.length) this.#forgetEnded();
    this.#turn = this.#startTurn(notes);
    return group;
  }

  #close(turn: OpenTurn): void {
    turn.close();
    for (const [id, each] of this.#unanswered) if (each === turn) this.#unanswered.delete(id);
    for (const id of turn.openCalls) this.#unanswered.set(id, turn);
  }

  #forgetEnded(): void {
    const starts = this.#earlier.map(({ from }) => from.line);
    this.#thread.forgetRequestsBefore(Math.min(this.#nextStart.line, ...starts));
    this.#branches.keep(new Set(this.#earlier));
    const kept = new Set([...this.#earlier, ...this.#lastEnded, ...this.#unanswered.values()]);
    for (const [uuid, { turn }] of this.#sidechains) if (!kept.has(turn)) this.#sidechains.delete(uuid);
  }

  #startTurn(notes: readonly Note[]): OpenTurn {
    const { lastTime, session } = this.#thread;
    return new OpenTurn(this.#thread, this.#nextStart, { time: lastTime, session, turnCount: this.#turnCount, notes });
  }

  #toGroup(turns: readonly OpenTurn[], startingWith: readonly OpenTurn[]): TurnGroup | undefined {
    const chains = [...new Set(this.#sidechains.values())];
    const threadsOf = (owner: OpenTurn) =>
      chains.flatMap(({ turn, key, grouper, turns: ended }) =>
        turn === owner ? (toThread([...ended, ...(grouper.open()?.turns ?? [])], key) ?? []) : [],
      );
    const [first, ...more] = turns.map((turn) => turn.toTurn(threadsOf(turn))).toSorted((a, b) => a.number - b.number);
    const [from] = startingWith.map((turn) => turn.from).toSorted((a, b) => a.line - b.line);
    return first && from && { turns: [first, ...more], from };
  }

  #claim(line: ChainLine, turn: OpenTurn): void {
    const { number, end } = line.location;
    turn.claim(line);
    if (number >= this.#nextStart.line) this.#nextStart = { line: number + 1, offset: end };
  }
}

/** After a compaction the conversation begins anew; the line still names the one before. */
function parentOf({ kind, fields }: ChainLine): string | undefined {
  return fields.parentUuid ?? (kind === 'system' ? fields.logicalParentUuid : undefined);
}

/** Whether the line would not come after a built-in command, so that a command before it was a prompt. */
function impliesPrompt(classified: ClassifiedLine): boolean {
  if (classified.role === 'meta') return classified.media.length > 0;
  if (classified.role === 'note') return NOTE_KINDS[classified.note.kind].impliesPrompt;
  return ['prompt', 'command', 'command-of-prompt', 'response', 'skill-body', 'attached-image'].includes(
    classified.role,
  );
}
