import { mkdirSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killProcesses, waitForProcesses } from '../support/home-processes.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { type Environment, letIdle, run } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';
import { StartedNodes } from '../support/started-nodes.js';
import { describeArrived } from './arrived.js';
import { ClaudeProcess } from './claude-process.js';
import { Clock } from './clock.js';
import { type CallHook, callByLauncher, callHere, callMute } from './hook-calls.js';
import { Project } from './project.js';
import { SECRET, Session } from './session.js';
import type { Circumstances, Ending, Midway, Step } from './steps.js';
import { type Config, type Events, type Place, TurnOracle } from './turn-oracle.js';

type StepOf<Kind extends Step['kind']> = Extract<Step, { kind: Kind }>;

const MOST_SESSIONS = 4;
const STOPPED: readonly Ending[] = ['stop', 'failure', 'only tools', 'no answer', 'late answer'];
/** A Stop waits half of it for its answer. */
const TIMEOUT_MS = 400;

/** A home with sessions in one folder, and two servers that their hooks send to. */
export class World {
  readonly #home = mkdtempSync(join(tmpdir(), 'cc-langfuse-'));
  readonly #servers: { readonly [place in Place]: LangfuseServer };
  readonly #given: Circumstances;
  readonly #isDown = new Set<Place>();
  readonly #sessions: Session[] = [];
  readonly #oracle: TurnOracle;
  readonly #clock = new Clock();
  readonly #project: Project;
  readonly #nodes: StartedNodes | undefined;
  readonly #callHook: CallHook;
  #launched = 0;

  private constructor(servers: { readonly [place in Place]: LangfuseServer }, given: Circumstances) {
    this.#servers = servers;
    this.#given = given;
    this.#project = new Project(this.#home, given.project, given.isLinked);
    this.#nodes = given.areLaunched ? new StartedNodes() : undefined;
    const stateFolder = join(this.#home, '.claude', 'state');
    this.#callHook = this.#nodes ? callByLauncher(stateFolder, this.#home, this.#nodes) : callHere(stateFolder);
    this.#oracle = new TurnOracle(given.areProven);
    mkdirSync(this.#projects, { recursive: true });
  }

  static async open(given: Circumstances): Promise<World> {
    const [A, B] = await Promise.all([LangfuseServer.start(), LangfuseServer.start()]);
    const world = new World({ A, B }, given);
    if (given.areProven) for (const goal of ['A', 'B'] as const) await world.#useHelper(goal);
    world.#addSession();
    world.#addSession();
    return world;
  }

  async take(step: Step): Promise<void> {
    // A Stop without a prompt id takes the next turn for its own if its worker starts after it has begun.
    const isOld = this.#given.version === '2.1.90';
    if (isOld || step.kind !== 'turn' || step.before !== 'go on') await this.#letWorkersEnd();
    if (step.kind === 'wait') return letIdle(this.#projects);
    if (step.kind === 'switch') return this.#switch(step.place);
    if (step.kind === 'backfill') return this.#backfill(step);
    const session = this.#sessions[step.session % this.#sessions.length];
    if (!session) return;
    if (step.kind === 'turn') return this.#takeTurn(session, step);
    if (step.kind === 'fork') return this.#fork(session, step);
    if (step.kind === 'mute' || step.kind === 'unmute') return this.#changeMute(step.kind, session);
    if (step.kind === 'grow') return this.#grow(session);
    if (step.kind === 'agent speaks') return this.#letAgentSpeak(session);
    if (step.kind === 'look') return this.#look(session, step);
    const process = session.processes[step.who];
    if (!process) return;
    if (step.kind === 'end') return this.#end(session, process);
    if (step.kind === 'kill') return this.#kill(session, process);
    if (step.kind === 'compact') return this.#callStart(session, process, 'compact');
    return this.#goOnElsewhere(session, process, step.kind);
  }

  /** Lets everything that can still be sent arrive. */
  async settle(): Promise<void> {
    await this.#letWorkersEnd();
    for (const each of [...this.#isDown]) this.#switch(each);
    for (const session of this.#sessions) for (const each of session.running) await this.#kill(session, each);
    letIdle(this.#projects);
    for (const goal of ['A', 'B', 'A', 'B'] as const) {
      await this.#useHelper(goal);
      await this.#letWorkersEnd();
    }
  }

  judge(): string[] {
    const arrived = (at: Place) => describeArrived(this.#servers[at]).filter(({ session }) => session !== HELPER);
    const muted = this.#sessions.filter(({ isMuted }) => isMuted).map(({ id }) => id);
    const all = [this.#servers.A, this.#servers.B].flatMap(({ observations }) => observations);
    return [
      ...this.#oracle.judge({ A: arrived('A'), B: arrived('B') }, new Set(muted)),
      ...(JSON.stringify(all).includes(SECRET) ? ['a secret was sent'] : []),
    ];
  }

  async close(): Promise<void> {
    for (const session of this.#sessions) for (const each of session.running) await each.kill();
    if (this.#nodes) await killProcesses(this.#home);
    await this.#nodes?.remove();
    await Promise.all([this.#servers.A.stop(), this.#servers.B.stop()]);
    await removeFolder(this.#home);
  }

  async #takeTurn(session: Session, step: StepOf<'turn'>): Promise<void> {
    const { who, config, before, midway, startsAgent } = step;
    // These versions have written the answer when Stop fires.
    const isEarly = step.ending === 'late answer' && this.#given.version === '2.1.90';
    const ending = isEarly ? 'stop' : step.ending;
    const known = session.processes[who];
    if (known && before === 'end') await this.#end(session, known);
    if (known && before === 'kill') await this.#kill(session, known);
    const process = session.processes[who] ?? (await this.#launch(session, who, config));
    process.hasAsked = true;
    const isUntraced = process.config.tracing !== 'on';
    if (session.agent && session.agent.process !== process && isUntraced) session.agent.isForgotten = true;
    const wasMuted = session.isMuted;
    const turn = session.ask(process);
    session.work(turn, ending, startsAgent);
    await this.#disturb(session, process, midway);
    session.finish(turn, ending);
    const isStopped = STOPPED.includes(ending);
    const isEmptyMute = midway === 'mute and unmute' || (midway === 'mute' && ending === 'no answer');
    if (isStopped) this.#muteByEvent(session, process);
    this.#oracle.add({
      session: session.id,
      startTime: turn,
      config: process.config,
      isStartSeen: process.isStartSeen,
      isStopped,
      isAnswered: ending !== 'no answer' && ending !== 'esc at once',
      isUnfinished: ending === 'killed',
      isAlone: process.isAlone && !session.isLeft && session.open.every((each) => each === process),
      isMuted: wasMuted || (isEmptyMute ? 'perhaps' : session.isMuted),
      open: session.open.map((each) => each.config),
    });
    const { agent } = session;
    if (agent?.turn === turn) this.#addAgentLine(session, process, agent.spokeAt);
    if (isStopped) await this.#callStop(session, process, ending);
    if (ending === 'late answer')
      this.#oracle.grow(session.id, { time: session.reply(turn), isMuted: session.isMuted });
    if (ending === 'killed') await this.#kill(session, process);
  }

  async #disturb(session: Session, process: ClaudeProcess, midway: Midway): Promise<void> {
    if (midway === 'compact') await this.#callStart(session, process, 'compact');
    if (midway === 'mute' || midway === 'mute and unmute') await this.#changeMute('mute', session);
    if (midway === 'unmute' || midway === 'mute and unmute') await this.#changeMute('unmute', session);
  }

  /** Any event tells that a process mutes its session. Without a start or a pid, it may be one that the user has unmuted. */
  #muteByEvent(session: Session, { config, isStartSeen, isUnmuted, pid }: ClaudeProcess): void {
    const isKnown = isStartSeen || pid !== undefined || !session.wasMuted;
    if (!config.mute || config.tracing !== 'on' || isUnmuted || !isKnown) return;
    // Where it began is not known, so what has not been sent by then stays, too.
    if (!isStartSeen && !session.isMuted) this.#oracle.doubt(session.id, () => true, 'muted');
    session.mute();
  }

  async #launch(session: Session, who: number, config: Config, source?: 'fork' | 'resume'): Promise<ClaudeProcess> {
    this.#launched += 1;
    const { starts, hasPids: hasPid } = this.#given;
    const isStartSeen = starts === 'all' || (starts === 'some' && this.#launched % 2 === 1);
    const process = new ClaudeProcess(this.#project.limit(config), { isStartSeen, hasPid });
    this.#join(session, who, process);
    await this.#callStart(session, process, source ?? (session.promptId === '' ? 'startup' : 'resume'));
    return process;
  }

  #join(session: Session, who: number, process: ClaudeProcess): void {
    session.processes[who] = process;
    process.lastLine = session.lastLine;
    if (session.running.length > 1) for (const each of session.running) each.isAlone = false;
  }

  #leave(session: Session, process: ClaudeProcess): void {
    session.processes[session.processes.indexOf(process)] = undefined;
  }

  async #kill(session: Session, process: ClaudeProcess): Promise<void> {
    await process.kill();
    this.#leave(session, process);
  }

  async #end(session: Session, process: ClaudeProcess): Promise<void> {
    await this.#callEnd(session, process, 'other');
    await this.#kill(session, process);
  }

  /** The process goes on in a new session. */
  async #goOnElsewhere(session: Session, process: ClaudeProcess, how: 'clear' | 'leave plan mode'): Promise<void> {
    if (this.#sessions.length === MOST_SESSIONS || (how === 'leave plan mode' && !process.hasAsked)) return;
    const next = this.#addSession();
    if (how === 'clear') await this.#callEnd(session, process, 'clear');
    else {
      // Leaving plan mode ends the session without an event; in early versions the new one began with a line of the old one.
      session.isLeft = true;
      next.takeOver(session);
    }
    this.#leave(session, process);
    Object.assign(process, { hasAsked: false, isAlone: true, isUnmuted: false });
    this.#join(next, 0, process);
    await this.#callStart(next, process, 'clear');
  }

  async #look(session: Session, { config, leave }: StepOf<'look'>): Promise<void> {
    const process = session.processes[0] ?? (await this.#launch(session, 0, config));
    if (leave === 'kill') await this.#kill(session, process);
    else if (leave === 'end') await this.#end(session, process);
    else await this.#goOnElsewhere(session, process, leave);
  }

  #grow(session: Session): void {
    if (!session.isAnswered) return;
    this.#oracle.grow(session.id, { time: session.grow(), isMuted: session.isMuted });
  }

  /** An agent goes on, or is continued, by whichever process is at work. */
  #letAgentSpeak(session: Session): void {
    const { agent } = session;
    const [process] = session.running;
    if (agent && process?.hasAsked) this.#addAgentLine(session, process, session.speak(agent));
  }

  #addAgentLine(session: Session, process: ClaudeProcess, time: number): void {
    const { agent, isMuted } = session;
    if (!agent) return;
    const isOwn = process === agent.process && !agent.isForgotten;
    const isUntraced = process !== agent.process && process.config.tracing !== 'on' && process.isTold;
    this.#oracle.speak(session.id, agent.turn, { time, isMuted, isUntraced, isOwn });
  }

  async #changeMute(command: 'mute' | 'unmute', session: Session): Promise<void> {
    await this.#clock.catchUp();
    await callMute(command, session.id, this.#environment('A'));
    this.#clock.pass();
    // One that no event has told of mutes the session afterwards.
    const known = session.running.filter(({ isTold }) => isTold);
    if (session.isMuted && command === 'unmute') for (const each of known) each.isUnmuted = true;
    // Nothing tells that a turn which waits for a tool is not under way.
    if (command === 'mute' && !session.isMuted)
      this.#oracle.doubt(session.id, ({ isUnfinished }) => isUnfinished, 'muted');
    if (command === 'mute') session.mute();
    else session.isMuted = false;
  }

  async #fork(origin: Session, { config, isEarly }: StepOf<'fork'>): Promise<void> {
    if (this.#sessions.length === MOST_SESSIONS || origin.promptId === '') return;
    const session = this.#addSession();
    const isMarked = this.#given.version === '2.1.328';
    if (!isMarked) this.#oracle.copy(origin.id, session.id);
    if (!isEarly) session.copyFrom(origin);
    await this.#launch(session, 0, config, isMarked ? 'fork' : 'resume');
    if (isEarly) session.copyFrom(origin);
    for (const process of session.running) process.lastLine = session.lastLine;
  }

  #switch(at: Place): void {
    const isDown = this.#isDown.delete(at);
    if (!isDown) this.#isDown.add(at);
    this.#servers[at].misbehave = () => (isDown ? undefined : { status: 401 });
  }

  async #backfill({ place, capture, force }: StepOf<'backfill'>): Promise<void> {
    if (!this.#project.isOff) this.#oracle.backfill(place, this.#project.limitCapture(capture), force);
    const env = { ...this.#environment(place), CC_LANGFUSE_CAPTURE: capture };
    await run(['backfill', '--all', '--yes', '--quiet', ...(force ? ['--force'] : [])], env);
  }

  async #callStart(session: Session, process: ClaudeProcess, source: string): Promise<void> {
    if (!process.isStartSeen) return;
    await this.#call(session, process, 'SessionStart', { source });
    process.isTold = true;
    if (source === 'compact') return;
    const { tracing, mute } = process.config;
    // Another process may be gone, unless it is known to run.
    const others = session.open.filter((each) => this.#given.hasPids && session.running.includes(each));
    session.open = tracing === 'on' ? [...others, process] : [];
    if (tracing === 'on' && mute) session.mute();
  }

  async #callStop(session: Session, process: ClaudeProcess, ending: Ending): Promise<void> {
    const hasAnswer = ending !== 'only tools' && ending !== 'no answer';
    const more = {
      ...this.#promptIdOf(session),
      ...(hasAnswer && { last_assistant_message: session.answer }),
      background_tasks: session.agent ? [{ id: session.agent.id, status: 'running' }] : [],
    };
    const env = ending === 'late answer' ? { CC_LANGFUSE_TIMEOUT: String(TIMEOUT_MS) } : {};
    await this.#call(session, process, ending === 'failure' ? 'StopFailure' : 'Stop', more, env);
    process.isTold = true;
    if (process.config.tracing !== 'on') session.open = [];
  }

  async #callEnd(session: Session, process: ClaudeProcess, reason: string): Promise<void> {
    this.#muteByEvent(session, process);
    await this.#call(session, process, 'SessionEnd', { ...this.#promptIdOf(session), reason });
    session.open = session.open.filter((each) => each !== process);
    const { agent } = session;
    if (agent && agent.process !== process && !this.#given.hasPids) agent.isForgotten = true;
  }

  #promptIdOf({ promptId }: Session) {
    return this.#given.version === '2.1.90' ? {} : { prompt_id: promptId };
  }

  async #call(
    { id, path }: Session,
    { config, pid, isStartSeen }: ClaudeProcess,
    event: string,
    more: object,
    env: Environment = {},
  ): Promise<void> {
    const { goal, capture, tag, tracing, mute } = config;
    if (tracing !== 'on' && !isStartSeen) this.#oracle.doubt(id, mayBeUnderWay, 'untraced');
    const payload = {
      session_id: id,
      transcript_path: path,
      cwd: this.#project.folder,
      hook_event_name: event,
      ...more,
    };
    await this.#clock.catchUp();
    await this.#callHook(payload, {
      ...this.#environment(goal === 'typo' ? 'A' : goal),
      ...(goal === 'typo' && { LANGFUSE_PUBLIC_KEY: 'pk-lf-typo' }),
      ...(tracing === 'excluded' && { CC_LANGFUSE_EXCLUDE: this.#project.otherName }),
      ...(mute && { CC_LANGFUSE_MUTE: 'true' }),
      ...(pid !== undefined && { CLAUDE_PID: String(pid) }),
      TRACE_TO_LANGFUSE: String(tracing !== 'off'),
      CC_LANGFUSE_CAPTURE: capture,
      LANGFUSE_TAGS: tag,
      CLAUDE_PROJECT_DIR: this.#project.folder,
      ...env,
      ...this.#project.passed,
    });
    this.#clock.pass();
  }

  async #letWorkersEnd(): Promise<void> {
    if (this.#nodes) await waitForProcesses(this.#home);
  }

  /** A session that goes on all the time, in the same folder. Its hooks recover what others have left. */
  async #useHelper(goal: Place): Promise<void> {
    const helper = new Session(HELPER, this.#pathOf(HELPER), this.#project.folder, this.#clock, this.#given.version);
    const config = { tracing: 'on', goal, capture: 'metadata', tag: 'x', mute: false } as const;
    const process = new ClaudeProcess(this.#project.limit(config), {
      isStartSeen: this.#given.starts === 'all',
      hasPid: false,
    });
    await this.#callStart(helper, process, 'resume');
    helper.finish(helper.ask(process), 'stop');
    await this.#callStop(helper, process, 'stop');
  }

  #addSession(): Session {
    const digit = String(this.#sessions.length + 1);
    const id = `${digit.repeat(8)}-${digit.repeat(4)}-4${digit.repeat(3)}-8${digit.repeat(3)}-${digit.repeat(12)}`;
    const added = new Session(id, this.#pathOf(id), this.#project.folder, this.#clock, this.#given.version);
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

  #pathOf(id: string): string {
    return join(this.#projects, '-work', `${id}.jsonl`);
  }
}

/** Whether no hook has said that a turn is over. */
const mayBeUnderWay = ({ isStopped }: Events) => !isStopped;

const HELPER = 'ffffffff-ffff-4fff-8fff-ffffffffffff';
