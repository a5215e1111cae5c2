import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ClaudeHome } from '../test/real/claude-home.js';
import { print } from '../test/real/headless.js';
import { type Script, says, text } from '../test/real/replies.js';
import { Terminal } from '../test/real/terminal.js';
import { TracedHome } from '../test/real/traced-home.js';
import { withSilentServer } from '../test/support/silent-server.js';
import { alternate, median } from './measure.js';

/** How long the user waits, in ms. */
export interface Waits {
  readonly withHook: number;
  readonly without: number;
  /** With hooks for the same events that only exit: no hook can take less. */
  readonly withEmptyHooks: number;
}

/** The background worker must have ended before the next run is timed. */
const REST_MS = 400;

/** Times `claude -p` with an API that answers at once. */
export async function timePrint(claude: string, runs: number): Promise<Waits> {
  const homes = await openHomes(1);
  try {
    const { traced, untraced, empty } = homes;
    return await alternate(
      {
        withHook: () => timeOnePrint(claude, traced.claude),
        without: () => timeOnePrint(claude, untraced),
        withEmptyHooks: () => timeOnePrint(claude, empty),
      },
      runs,
      REST_MS,
    );
  } finally {
    await homes.close();
  }
}

/** Times `claude -p` while the Langfuse server accepts connections and never answers: the first run, and those after it. */
export async function timeHangingServer(claude: string, timeoutMs: number, runs: number) {
  const homes = await openHomes(1, { CC_LANGFUSE_TIMEOUT: String(timeoutMs) });
  const { traced, untraced } = homes;
  const waits = { first: Number.NaN, later: [] as number[], without: [] as number[] };
  try {
    await withSilentServer(async (url) => {
      const settings = join(traced.claude.home, '.claude', 'settings.json');
      writeFileSync(settings, readFileSync(settings, 'utf8').replaceAll(traced.server.url, url));
      await timeOnePrint(claude, untraced);
      waits.first = await timeOnePrint(claude, traced.claude);
      for (let run = 0; run < runs; run += 1) {
        waits.without.push(await timeOnePrint(claude, untraced));
        waits.later.push(await timeOnePrint(claude, traced.claude));
      }
    });
    return { first: waits.first, later: median(waits.later), without: median(waits.without) };
  } finally {
    await homes.close();
  }
}

async function timeOnePrint(claude: string, home: ClaudeHome): Promise<number> {
  const startedAt = performance.now();
  await print(claude, home, promptOf(0));
  return performance.now() - startedAt;
}

/** Times a session whose prompts are streamed to `claude -p`, each as soon as the one before has been answered. */
export async function timeStream(claude: string, turns: number, runs: number): Promise<Waits> {
  const homes = await openHomes(turns);
  try {
    const { traced, untraced, empty } = homes;
    return await alternate(
      {
        withHook: () => timeOneStream(claude, traced.claude, turns),
        without: () => timeOneStream(claude, untraced, turns),
        withEmptyHooks: () => timeOneStream(claude, empty, turns),
      },
      runs,
      REST_MS,
    );
  } finally {
    await homes.close();
  }
}

async function timeOneStream(claude: string, { work: cwd, env }: ClaudeHome, turns: number): Promise<number> {
  const startedAt = performance.now();
  const format = ['--input-format', 'stream-json', '--output-format', 'stream-json', '--verbose'];
  const child = spawn(claude, ['-p', ...format], { cwd, env, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = new Promise((resolve, reject) => child.on('close', resolve).on('error', reject));
  let answered = 0;
  const ask = () => {
    const message = { role: 'user', content: promptOf(answered) };
    child.stdin.write(`${JSON.stringify({ type: 'user', message })}\n`);
  };
  ask();
  for await (const line of createInterface({ input: child.stdout })) {
    if (JSON.parse(line).type !== 'result') continue;
    answered += 1;
    if (answered < turns) ask();
    else child.stdin.end();
  }
  await ended;
  if (answered < turns) throw new Error(`Claude Code answered ${answered} of ${turns} prompts`);
  return performance.now() - startedAt;
}

/** Times a turn in the terminal with an API that answers at once, from Enter until the next prompt can be typed. */
export async function timeTerminalTurn(claude: string, runs: number): Promise<Waits> {
  const homes = await openHomes(runs + 1);
  const withHook = await Terminal.open(claude, homes.traced.claude);
  const without = await Terminal.open(claude, homes.untraced);
  const withEmptyHooks = await Terminal.open(claude, homes.empty);
  const timed = (terminal: Terminal) => {
    let turn = 0;
    return async () => {
      await terminal.write(promptOf(turn));
      const startedAt = performance.now();
      await terminal.press('Enter');
      await terminal.shows(answerOf(turn));
      await terminal.idle();
      turn += 1;
      return performance.now() - startedAt;
    };
  };
  try {
    return await alternate(
      { withHook: timed(withHook), without: timed(without), withEmptyHooks: timed(withEmptyHooks) },
      runs,
      REST_MS,
    );
  } finally {
    await Promise.all([withHook.close(), without.close(), withEmptyHooks.close()]);
    await homes.close();
  }
}

async function openHomes(turns: number, env: { readonly [name: string]: string } = {}) {
  const script: Script = Object.fromEntries(
    Array.from({ length: turns }, (_, turn) => [promptOf(turn), [says(text(answerOf(turn)))]]),
  );
  const traced = await TracedHome.open(script, { env });
  const untraced = await ClaudeHome.open(script);
  const empty = await ClaudeHome.open(script, {
    hooks: { SessionStart: 'exit 0', Stop: 'exit 0', SessionEnd: 'exit 0' },
  });
  const close = () => Promise.all([traced.close(), untraced.close(), empty.close()]);
  return { traced, untraced, empty, close };
}

/** Each turn has another prompt and answer, so that the screen shows when its own answer is there. */
function promptOf(turn: number): string {
  return `Say number ${turn}.`;
}

function answerOf(turn: number): string {
  return `This is number ${turn}.`;
}
