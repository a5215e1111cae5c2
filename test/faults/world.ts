import { appendFileSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callHook } from '../support/call-hook.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { appendLines, assistant, at, jsonLines, ms, toolResult, toolUse, user } from '../support/lines.js';
import { type Environment, letIdle, run } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';
import { StartedNodes } from '../support/started-nodes.js';
import { type Capture, type Config, describeArrived, type Place, TurnOracle } from './turn-oracle.js';

/** What happens to a session, or to everything. A session is given by its place among those that exist. */
export type Step =
  | {
      kind: 'turn';
      session: number;
      config: Config;
      before: 'go on' | 'end' | 'kill';
      ending: 'stop' | 'failure' | 'esc';
    }
  | { kind: 'grow' | 'end' | 'kill' | 'compact' | 'clear' | 'leave plan mode'; session: number }
  | { kind: 'fork'; session: number; config: Config }
  | { kind: 'switch'; place: Place }
  | { kind: 'wait' }
  | { kind: 'backfill'; place: Place; capture: Capture; force: boolean };

/** What holds for a whole sequence. */
export interface Circumstances {
  /** Whether SessionStart hooks are registered. */
  readonly hasStart: boolean;
  /** Whether both places have acknowledged something before. */
  readonly areProven: boolean;
  /** Whether hooks are called as Claude Code does: by the launcher, whose workers may overlap. Otherwise in this process, in front. */
  readonly areLaunched: boolean;
}

/** A process of Claude Code. */
interface Process {
  readonly config: Config;
  hasAsked: boolean;
}

interface Session {
  readonly id: string;
  readonly path: string;
  process: Process | undefined;
  /** The traced processes that were killed, as long as nothing has told the program that they are gone. */
  killed: Config[];
  /** Another session took over from it. That one's first Stop ends it, even if it has been resumed since. */
  isLeft: boolean;
  promptId: string;
  answer: string;
}

const MOST_SESSIONS = 4;

/** A home with sessions in one folder, and two servers that their hooks send to. */
export class World {
  readonly #home = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  readonly #servers: { readonly [place in Place]: LangfuseServer };
  readonly #isDown = new Set<Place>();
  readonly #sessions: Session[] = [];
  readonly #oracle: TurnOracle;
  readonly #hasStart: boolean;
  readonly #nodes: StartedNodes | undefined;
  #seconds = 0;

  private constructor(
    servers: { readonly [place in Place]: LangfuseServer },
    { hasStart, areProven, areLaunched }: Circumstances,
  ) {
    this.#servers = servers;
    this.#nodes = areLaunched ? new StartedNodes() : undefined;
    this.#oracle = new TurnOracle(areProven);
    this.#hasStart = hasStart;
    mkdirSync(this.#projects, { recursive: true });
  }

  static async open(circumstances: Circumstances): Promise<World> {
    const [A, B] = await Promise.all([LangfuseServer.start(), LangfuseServer.start()]);
    const world = new World({ A, B }, circumstances);
    if (circumstances.areProven) for (const goal of ['A', 'B'] as const) await world.#useHelper(goal);
    world.#addSession();
    world.#addSession();
    return world;
  }

  async take(step: Step): Promise<void> {
    if (step.kind !== 'turn' || step.before !== 'go on') await this.#letWorkersEnd();
    if (step.kind === 'wait') return letIdle(this.#projects);
    if (step.kind === 'switch') return this.#switch(step.place);
    if (step.kind === 'backfill') return this.#backfill(step);
    const session = this.#sessions[step.session % this.#sessions.length];
    if (!session) return;
    if (step.kind === 'turn') return this.#takeTurn(session, step);
    if (step.kind === 'fork') return this.#fork(session, step.config);
    if (!session.process) return;
    const { process } = session;
    if (step.kind === 'grow') return this.#grow(session);
    if (step.kind === 'end') return this.#end(session);
    if (step.kind === 'kill') return this.#kill(session);
    if (step.kind === 'compact') return this.#callStart(session, 'compact');
    if (this.#sessions.length === MOST_SESSIONS) return;
    // It is left after a turn. Without SessionStart hooks, that a process without tracing left it cannot be told from one with it.
    const isTold = this.#hasStart || process.config.tracing === 'on';
    if (step.kind === 'leave plan mode' && !(process.hasAsked && isTold)) return;
    const next = this.#addSession();
    if (step.kind === 'clear') await this.#end(session);
    else {
      // Leaving plan mode ends the session without an event; in early versions the new one began with a line of the old one.
      this.#kill(session);
      session.isLeft = true;
      appendLines(next.path, {
        ...user('carry out the plan', { uuid: `${next.id}-plan`, timestamp: at(this.#seconds) }),
        sessionId: session.id,
      });
    }
    next.process = { ...process, hasAsked: false };
    await this.#callStart(next, 'clear');
  }

  /** Lets everything that can still be sent arrive. */
  async settle(): Promise<void> {
    await this.#letWorkersEnd();
    for (const each of [...this.#isDown]) this.#switch(each);
    for (const each of this.#sessions) each.process = undefined;
    letIdle(this.#projects);
    for (const goal of ['A', 'B', 'A', 'B'] as const) {
      await this.#useHelper(goal);
      await this.#letWorkersEnd();
    }
  }

  judge(): string[] {
    const arrived = (at: Place) => {
      const server = this.#servers[at];
      const all = describeArrived(server.observations, (observation) => server.timesSent(observation));
      return all.filter(({ session }) => session !== HELPER);
    };
    return this.#oracle.judge({ A: arrived('A'), B: arrived('B') });
  }

  async close(): Promise<void> {
    await this.#nodes?.remove();
    await Promise.all([this.#servers.A.stop(), this.#servers.B.stop()]);
    await removeFolder(this.#home);
  }

  async #takeTurn(session: Session, { config, before, ending }: Extract<Step, { kind: 'turn' }>): Promise<void> {
    if (session.process && before === 'end') await this.#end(session);
    if (session.process && before === 'kill') this.#kill(session);
    if (!session.process) await this.#launch(session, config);
    const { config: own = config } = session.process ?? {};
    if (session.process) session.process.hasAsked = true;
    this.#seconds += 10;
    const n = this.#seconds;
    this.#oracle.add(session.id, ms(n), own, session.killed, {
      isUnseen: ending === 'esc' && (!this.#hasStart || session.isLeft),
      isTried: ending !== 'esc',
    });
    session.promptId = `${session.id}-p${n}`;
    session.answer = `answer ${n}`;
    const more = { cwd: this.#folder, sessionId: session.id };
    const isFailure = ending === 'failure';
    appendLines(
      session.path,
      user(`question ${n}`, { ...more, uuid: `${session.id}-${n}`, promptId: session.promptId, timestamp: at(n) }),
      assistant(`${session.id}-m${n}`, [toolUse(`t${n}`, 'Read', { path: 'a' })], { ...more, timestamp: at(n + 1) }),
      user([toolResult(`t${n}`, 'content')], { ...more, promptId: session.promptId, timestamp: at(n + 2) }),
      ...(ending === 'esc'
        ? [
            user([{ type: 'text', text: '[Request interrupted by user]' }], {
              ...more,
              promptId: session.promptId,
              timestamp: at(n + 3),
            }),
          ]
        : [
            assistant(`${session.id}-n${n}`, [{ type: 'text', text: session.answer }], {
              ...more,
              timestamp: at(n + 3),
              ...(isFailure && { isApiErrorMessage: true }),
            }),
          ]),
    );
    if (ending !== 'esc') await this.#callStop(session, isFailure ? 'StopFailure' : 'Stop');
  }

  async #launch(session: Session, config: Config, source?: 'fork'): Promise<void> {
    session.process = { config, hasAsked: false };
    const isNew = session.promptId === '';
    await this.#callStart(session, source ?? (isNew ? 'startup' : 'resume'));
  }

  #kill(session: Session): void {
    const { config } = session.process ?? {};
    session.process = undefined;
    if (config?.tracing === 'on') session.killed = [...session.killed, config];
  }

  async #end(session: Session): Promise<void> {
    await this.#call(session, 'SessionEnd', { prompt_id: session.promptId, reason: 'other' });
    if (session.process?.config.tracing !== 'off') session.killed = [];
    session.process = undefined;
  }

  #grow(session: Session): void {
    if (session.promptId === '') return;
    this.#oracle.grow(session.id);
    appendLines(
      session.path,
      assistant(`${session.id}-g${this.#seconds}`, [{ type: 'text', text: 'more' }], {
        sessionId: session.id,
        cwd: this.#folder,
        timestamp: at(this.#seconds + 5),
      }),
    );
  }

  async #fork(origin: Session, config: Config): Promise<void> {
    if (this.#sessions.length === MOST_SESSIONS || origin.promptId === '') return;
    const session = this.#addSession();
    const lines = readFileSync(origin.path, 'utf8').trim().split('\n');
    const copies = lines.map((line) => {
      const fields = JSON.parse(line);
      return { ...fields, sessionId: session.id, forkedFrom: { sessionId: origin.id, messageUuid: fields.uuid } };
    });
    appendFileSync(session.path, jsonLines(copies));
    session.promptId = `${session.id}-copied`;
    await this.#launch(session, config, 'fork');
  }

  #switch(at: Place): void {
    const isDown = this.#isDown.delete(at);
    if (!isDown) this.#isDown.add(at);
    this.#servers[at].misbehave = () => (isDown ? undefined : { status: 401 });
  }

  async #backfill({ place, capture, force }: Extract<Step, { kind: 'backfill' }>): Promise<void> {
    this.#oracle.backfill(place, capture, force);
    const env = { ...this.#environment(place), CC_LANGFUSE_CAPTURE: capture };
    await run(['backfill', '--all', '--yes', '--quiet', ...(force ? ['--force'] : [])], env);
  }

  async #callStart(session: Session, source: string): Promise<void> {
    if (this.#hasStart) await this.#call(session, 'SessionStart', { source });
    if (this.#hasStart && session.process?.config.tracing !== 'off') session.killed = [];
  }

  async #callStop(session: Session, event: 'Stop' | 'StopFailure'): Promise<void> {
    const { promptId, answer } = session;
    await this.#call(session, event, { prompt_id: promptId, last_assistant_message: answer, background_tasks: [] });
    if (session.process?.config.tracing !== 'off') session.killed = [];
  }

  async #call({ id, path, process: claude }: Session, event: string, more: object): Promise<void> {
    if (!claude || claude.config.tracing === 'off') return;
    const { goal, capture, tag, tracing } = claude.config;
    const payload = { session_id: id, transcript_path: path, cwd: this.#folder, hook_event_name: event, ...more };
    const env = {
      ...this.#environment(goal === 'typo' ? 'A' : goal),
      ...(goal === 'typo' && { LANGFUSE_PUBLIC_KEY: 'pk-lf-typo' }),
      ...(tracing === 'excluded' && { CC_LANGFUSE_EXCLUDE: this.#folder }),
      CC_LANGFUSE_CAPTURE: capture,
      LANGFUSE_TAGS: tag,
    };
    if (!this.#nodes) return callHook(payload, env);
    await this.#nodes.launch(event, payload, env);
    // What follows a start or an end was written after it. Stops may overlap.
    if (event.startsWith('Session')) await this.#letWorkersEnd();
  }

  async #letWorkersEnd(): Promise<void> {
    await this.#nodes?.haveEnded();
  }

  /** A session that goes on all the time, in the same folder. Its hooks recover what others have left. */
  async #useHelper(goal: Place): Promise<void> {
    this.#seconds += 10;
    const path = this.#pathOf(HELPER);
    appendLines(
      path,
      user('help', {
        uuid: `h${this.#seconds}`,
        promptId: `h${this.#seconds}`,
        timestamp: at(this.#seconds),
        cwd: this.#folder,
      }),
      assistant(`hm${this.#seconds}`, 'done', { timestamp: at(this.#seconds + 1) }),
    );
    const config = { tracing: 'on', goal, capture: 'metadata', tag: 'x' } as const;
    const process = { config, hasAsked: true };
    const helper = {
      id: HELPER,
      path,
      process,
      killed: [],
      isLeft: false,
      promptId: `h${this.#seconds}`,
      answer: 'done',
    };
    await this.#callStart(helper, 'resume');
    await this.#callStop(helper, 'Stop');
  }

  #addSession(): Session {
    const digit = String(this.#sessions.length + 1);
    const id = `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`;
    const added: Session = {
      id,
      path: this.#pathOf(id),
      process: undefined,
      killed: [],
      isLeft: false,
      promptId: '',
      answer: '',
    };
    this.#sessions.push(added);
    return added;
  }

  #environment(at: Place): Environment {
    return {
      HOME: this.#home,
      CLAUDE_CONFIG_DIR: join(this.#home, '.claude'),
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: this.#servers[at].url,
    };
  }

  get #projects(): string {
    return join(this.#home, '.claude', 'projects');
  }

  get #folder(): string {
    return join(this.#home, 'work');
  }

  #pathOf(id: string): string {
    return join(this.#projects, '-work', `${id}.jsonl`);
  }
}

const HELPER = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
