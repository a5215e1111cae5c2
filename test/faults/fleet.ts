import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AS_RECORDED, sessionIdOf, writeSession } from '../support/generated.js';
import { LangfuseServer, type Misbehaviour } from '../support/langfuse-server.js';
import { LAUNCHER, Workplace } from '../support/program.js';
import { removeFolder } from '../support/remove-folder.js';
import { startHook } from '../support/start-hook.js';
import { readState } from '../support/state-files.js';

interface FleetDay {
  readonly homes: number;
  /** In all homes together, which take turns. */
  readonly turns: number;
  /** How many begin in a second. As fast as the machine allows, if it is not given. */
  readonly turnsPerSecond?: number;
  /** How many hooks may run at the same time. A turn that is due waits for one of them to end. */
  readonly hooksAtOnce: number;
}

interface FleetFigures {
  readonly turns: number;
  readonly observations: number;
  /** Requests that the server refused during the outage, or whose connection it broke. */
  readonly refused: number;
  /** Homes in which something waited when the day was over, and which had no turn after the outage. */
  readonly waiting: number;
  /** Observations that a backfill of the same homes sends, and the day has not brought. */
  readonly lost: number;
  /** Observations that the day has brought and no backfill sends, and those that arrived again unchanged. */
  readonly doubled: number;
  readonly exitsOtherThanZero: number;
  /** How much later than it was due the latest turn began. */
  readonly latestMs: number;
}

/** An hour of a day of eight. */
const OUTAGE = { from: 3 / 8, to: 4 / 8 };
const OUTAGES: readonly Misbehaviour[] = [{ status: 503 }, { disconnect: 'before taking' }, { status: 500 }];
const CALLS_PER_TURN = 3;

/**
 * Lets each home have turns in turn, as a session that goes on, and calls the Stop hook for each. The server is down for an
 * eighth of the turns. At the end of the day, the sessions end in which something still waits.
 */
export async function playFleetDay(day: FleetDay): Promise<FleetFigures> {
  const server = await LangfuseServer.start();
  const homes = Array.from({ length: day.homes }, (_, n) => new Home(server, n));
  let refused = 0;
  let isDown = false;
  server.misbehave = () => {
    if (!isDown) return undefined;
    refused += 1;
    return OUTAGES[refused % OUTAGES.length];
  };
  try {
    const hooks = new Hooks(day.hooksAtOnce);
    const startedAt = Date.now();
    let latestMs = 0;
    for (let turn = 0; turn < day.turns; turn += 1) {
      const dueAt = day.turnsPerSecond ? startedAt + (turn / day.turnsPerSecond) * 1_000 : Date.now();
      await sleep(Math.max(0, dueAt - Date.now()));
      const isDue = turn >= OUTAGE.from * day.turns && turn < OUTAGE.to * day.turns;
      // A real outage lasts longer than the hooks that began in it.
      if (isDown && !isDue) await hooks.end();
      isDown = isDue;
      await hooks.start(() => pick(homes, turn).takeTurn());
      latestMs = Math.max(latestMs, Date.now() - dueAt);
    }
    await hooks.end();
    const waiting = homes.filter((home) => home.isWaiting);
    for (const home of waiting) await hooks.start(() => home.end());
    await hooks.end();
    const arrived = keysOf(server);
    const expected = await backfillAll(homes);
    return {
      turns: day.turns,
      observations: arrived.size,
      refused,
      waiting: waiting.length,
      lost: countMissing(expected, arrived),
      doubled: countMissing(arrived, expected) + server.repeated.length,
      exitsOtherThanZero: hooks.exitsOtherThanZero,
      latestMs,
    };
  } finally {
    await server.stop();
    for (const { home } of homes) await removeFolder(home);
  }
}

/** The hooks that run at the same time. */
class Hooks {
  exitsOtherThanZero = 0;
  readonly #running = new Set<Promise<void>>();
  readonly #atOnce: number;

  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /** Resolves when it has been started, which may have to wait until another one ends. */
  async start(hook: () => Promise<number | null>): Promise<void> {
    while (this.#running.size >= this.#atOnce) await Promise.race(this.#running);
    const ended: Promise<void> = hook().then((exitCode) => {
      this.#running.delete(ended);
      if (exitCode !== 0) this.exitsOtherThanZero += 1;
    });
    this.#running.add(ended);
  }

  async end(): Promise<void> {
    await Promise.all(this.#running);
  }
}

/** A developer's home, with one session. */
class Home extends Workplace {
  readonly #number: number;
  #turns = 0;
  /** A developer has one turn after the other. */
  #last: Promise<number | null> = Promise.resolve(0);

  constructor(server: LangfuseServer, number: number) {
    super(server);
    this.#number = number;
  }

  /** Whether something has not been acknowledged. */
  get isWaiting(): boolean {
    const folder = this.stateFolder;
    if (this.#turns === 0) return false;
    return !existsSync(folder) || JSON.stringify(readState(folder)).includes('"pending":');
  }

  takeTurn(): Promise<number | null> {
    this.#last = this.#last.then(async () => {
      if (this.#turns === 0) await this.#call('SessionStart', { source: 'startup' });
      this.#turns += 1;
      mkdirSync(dirname(this.#transcript), { recursive: true });
      appendFileSync(this.#transcript, this.#writeTurn());
      return this.#call('Stop', { last_assistant_message: `answer ${this.#turns}` });
    });
    return this.#last;
  }

  end(): Promise<number | null> {
    return this.#call('SessionEnd', { reason: 'other' });
  }

  get #session(): string {
    return sessionIdOf(this.#number + 1);
  }

  get #transcript(): string {
    return this.transcriptOf(this.#session);
  }

  #writeTurn(): Buffer {
    const cwd = `/home/dev/${this.#number}`;
    const turn = { sessionId: this.#session, cwd, startsAt: Date.now(), turns: 1 };
    const more = { firstTurn: this.#turns, callsPerTurn: CALLS_PER_TURN, ...AS_RECORDED };
    return readFileSync(writeSession(join(this.home, 'turn'), { ...turn, ...more }));
  }

  async #call(event: string, more: object): Promise<number | null> {
    const about = { session_id: this.#session, transcript_path: this.#transcript };
    const payload = { ...about, ...more, hook_event_name: event };
    // The launcher waits, so that nothing is still at work when the day is over.
    const env = { PATH: process.env.PATH, ...this.env, CC_LANGFUSE_WAIT: '1' };
    const { exitCode } = await startHook([LAUNCHER, event, process.execPath], payload, { env });
    return exitCode;
  }
}

/** What all homes should have sent: what a backfill sends of their transcripts. */
async function backfillAll(homes: readonly Home[]): Promise<Set<string>> {
  const all = await Workplace.open();
  try {
    for (const { projects } of homes.filter((home) => existsSync(home.projects)))
      cpSync(projects, all.projects, { recursive: true });
    const { exitCode, stderr } = await all.backfill('--all', '--include-open', '--quiet');
    if (exitCode !== 0) throw new Error(stderr);
    return keysOf(all.server);
  } finally {
    await all.close();
  }
}

/** With another start time it would be another row in Langfuse. */
function keysOf({ observations }: LangfuseServer): Set<string> {
  return new Set(observations.map(({ traceId, id, startTime }) => `${traceId} ${id} ${startTime}`));
}

function countMissing(expected: ReadonlySet<string>, found: ReadonlySet<string>): number {
  return [...expected].filter((key) => !found.has(key)).length;
}

function pick<Item>(items: readonly Item[], n: number): Item {
  const item = items[n % items.length];
  if (item === undefined) throw new Error('there is nothing to pick from');
  return item;
}
