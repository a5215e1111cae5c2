import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { appendLines, assistant, jsonLines, toolResult, toolUse, user } from '../support/lines.js';
import type { ClaudeProcess } from './claude-process.js';
import type { Clock } from './clock.js';
import type { Circumstances, Ending } from './steps.js';

/** What is redacted wherever it stands. */
export const SECRET = `ghp_${'x1Y2z3A4b5C6'.repeat(3)}`;

/** An agent that a turn has started in the background. */
interface Agent {
  readonly id: string;
  /** When the turn began, and the agent first spoke. */
  readonly turn: number;
  readonly spokeAt: number;
  readonly process: ClaudeProcess | undefined;
  /**
   * Another process has ended, and nothing told the two apart, or one without tracing has begun a turn: then what the agent says
   * may be that one's.
   */
  isForgotten?: boolean;
}

/** A session as Claude Code keeps it. Two processes can be at work in it. */
export class Session {
  readonly id: string;
  readonly path: string;
  readonly processes: [ClaudeProcess | undefined, ClaudeProcess | undefined] = [undefined, undefined];
  /** The traced processes whose starts were seen, as long as nothing has told the program that they are over. */
  open: readonly ClaudeProcess[] = [];
  /** Another session took over from it. That one's first Stop ends it, even if it has been resumed since. */
  isLeft = false;
  isMuted = false;
  wasMuted = false;
  /** The last line of the file. */
  lastLine: string | undefined;
  promptId = '';
  /** Whether the last turn has an answer, or a part of one. */
  isAnswered = false;
  answer = '';
  agent: Agent | undefined;
  /** The process whose turn was the last. */
  #asker: ClaudeProcess | undefined;
  /** The last line before its prompt. */
  #lastAnswered: string | undefined;
  readonly #folder: string;
  readonly #clock: Clock;
  readonly #version: Circumstances['version'];

  constructor(id: string, path: string, folder: string, clock: Clock, version: Circumstances['version']) {
    this.id = id;
    this.path = path;
    this.#folder = folder;
    this.#clock = clock;
    this.#version = version;
  }

  get running(): ClaudeProcess[] {
    return this.processes.filter((each) => each !== undefined);
  }

  mute(): void {
    this.isMuted = true;
    this.wasMuted = true;
  }

  /** Begins a turn in a process, and returns its time. */
  ask(process: ClaudeProcess): number {
    this.#asker = process;
    this.#lastAnswered = process.lastLine;
    const time = this.#clock.next();
    this.promptId = `${this.id}-p${time}`;
    this.answer = `answer ${time}`;
    this.#append(time, user(`question ${time} ${SECRET}`, { promptId: this.#ownPromptId }));
    return time;
  }

  /** Writes what follows the prompt, up to the answer. */
  work(turn: number, ending: Ending, startsAgent: boolean): void {
    this.isAnswered = ending !== 'no answer' && ending !== 'esc at once';
    if (!this.isAnswered) return;
    this.#say(`m${turn}`, [toolUse(`t${turn}`, 'Read', { path: 'a' })]);
    if (ending === 'killed') return;
    this.#hear([toolResult(`t${turn}`, 'content')]);
    if (startsAgent) this.#startAgent(turn);
  }

  finish(turn: number, ending: Ending): void {
    const isRetracted = ending === 'no answer' || ending === 'esc at once';
    if (ending === 'esc' || ending === 'esc at once')
      this.#hear([{ type: 'text', text: '[Request interrupted by user]' }]);
    if (ending === 'stop') this.reply(turn);
    if (ending === 'failure') this.reply(turn, { isApiErrorMessage: true });
    // The next prompt does not descend from one that was not answered.
    if (isRetracted && this.#asker) this.lastLine = this.#asker.lastLine = this.#lastAnswered;
  }

  /** Writes the answer. Returns its time. */
  reply(turn: number, more: object = {}): number {
    return this.#say(`n${turn}`, this.#text(this.answer), more);
  }

  /** The last turn goes on. Returns the time. */
  grow(): number {
    return this.#say(`g${this.promptId}`, this.#text('more'));
  }

  /** The agent that was started last goes on. Returns the time. */
  speak({ id }: Pick<Agent, 'id'>): number {
    const time = this.#clock.next();
    this.#appendToAgent(id, assistant(`${id}-${time}`, this.#text(`found ${time}`), this.#fields(time)));
    return time;
  }

  /** Copies what a fork has of another session. */
  copyFrom(origin: Session): void {
    const lines = readFileSync(origin.path, 'utf8').trim().split('\n');
    const copies = lines.map((line) => {
      const fields = JSON.parse(line);
      const mark = { forkedFrom: { sessionId: origin.id, messageUuid: fields.uuid } };
      return { ...fields, sessionId: this.id, ...(this.#version === '2.1.328' && mark) };
    });
    appendFileSync(this.path, jsonLines(copies));
    this.promptId = `${this.id}-copied`;
    this.lastLine = origin.lastLine;
  }

  /** Begins with a line of another session, as early versions did after plan mode. */
  takeOver(origin: Session): void {
    const [line = ''] = readFileSync(origin.path, 'utf8').split('\n');
    appendFileSync(this.path, `${line}\n`);
  }

  get #ownPromptId(): string | undefined {
    return this.#version === '2.1.90' ? undefined : this.promptId;
  }

  #fields(time: number) {
    const timestamp = new Date(time).toISOString();
    return { cwd: this.#folder, sessionId: this.id, version: this.#version, timestamp };
  }

  #say(id: string, content: object[], more: object = {}): number {
    const time = this.#clock.next();
    this.#append(time, assistant(`${this.id}-${id}`, content, more));
    return time;
  }

  #hear(content: object[], more: object = {}): void {
    this.#append(this.#clock.next(), user(content, { promptId: this.#ownPromptId, ...more }));
  }

  /** Each process goes on where it was. */
  #append(time: number, line: object): void {
    const uuid = `${this.id}-${time}`;
    const parentUuid = this.#asker?.lastLine ?? null;
    appendLines(this.path, { ...this.#fields(time), uuid, parentUuid, ...line });
    this.lastLine = uuid;
    if (this.#asker) this.#asker.lastLine = uuid;
  }

  #text(words: string): object[] {
    return [{ type: 'text', text: words }];
  }

  #startAgent(turn: number): void {
    const id = `a${turn}`;
    const call = `call-${id}`;
    this.#say(`s${turn}`, [toolUse(call, 'Agent', { subagent_type: 'Explore' })]);
    const toolUseResult = { isAsync: true, status: 'async_launched', agentId: id };
    this.#hear([toolResult(call, 'Async agent launched successfully.')], { toolUseResult });
    const meta = join(this.#agentsFolder, `agent-${id}.meta.json`);
    mkdirSync(this.#agentsFolder, { recursive: true });
    writeFileSync(meta, JSON.stringify({ agentType: 'Explore', toolUseId: call, requestShape: 'background' }));
    this.#appendToAgent(id, user(`do ${id}`, this.#fields(this.#clock.next())));
    this.agent = { id, turn, spokeAt: this.speak({ id }), process: this.#asker };
  }

  #appendToAgent(id: string, line: object): void {
    const own = { isSidechain: true, agentId: id, parentUuid: null };
    appendLines(join(this.#agentsFolder, `agent-${id}.jsonl`), { ...own, ...line });
  }

  get #agentsFolder(): string {
    return join(dirname(this.path), this.id, 'subagents');
  }
}
