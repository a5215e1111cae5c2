import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Exporter } from './support/exporter.js';
import { type Recording, recordings, transcriptsOf } from './support/recording.js';

interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly read: number;
  readonly written: number;
}

interface CostState {
  readonly type: string;
  readonly modelUsage?: {
    readonly [model: string]: {
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cacheReadInputTokens: number;
      readonly cacheCreationInputTokens: number;
    };
  };
}

/** Reads Claude Code's own account of a session, the last one in its file. */
function accountOf(path: string): Map<string, Tokens> | undefined {
  const lines = readFileSync(path, 'utf8').split('\n');
  const last = lines.findLast((line) => line.startsWith('{"type":"cost-state"'));
  if (last === undefined) return undefined;
  const { modelUsage = {} } = JSON.parse(last) as CostState;
  return new Map(
    Object.entries(modelUsage).map(([model, usage]) => [
      model.replace(/\[1m\]$/, ''),
      {
        input: usage.inputTokens,
        output: usage.outputTokens,
        read: usage.cacheReadInputTokens,
        written: usage.cacheCreationInputTokens,
      },
    ]),
  );
}

async function exportedOf(recording: Recording, session: string): Promise<Map<string, Tokens>> {
  const exporter = await Exporter.open();
  try {
    for (const path of transcriptsOf(recording)) await exporter.export(path);
    const models = new Map<string, Tokens>();
    for (const { model, usage = {}, trace } of exporter.server.observations) {
      if (model === undefined || trace.sessionId !== session) continue;
      const { input = 0, output = 0, read = 0, written = 0 } = models.get(model) ?? {};
      models.set(model, {
        input: input + (usage.input ?? 0),
        output: output + (usage.output ?? 0),
        read: read + (usage.cache_read_input_tokens ?? 0),
        written: written + (usage.input_cache_creation_5m ?? 0) + (usage.input_cache_creation_1h ?? 0),
      });
    }
    return models;
  } finally {
    await exporter.close();
  }
}

const sessions = recordings().flatMap((recording) =>
  transcriptsOf(recording).flatMap((path) => {
    const account = accountOf(path);
    return account
      ? [{ name: `${recording.name} ${basename(path, '.jsonl').slice(0, 8)}`, recording, path, account }]
      : [];
  }),
);

/** The tokens that an account has in addition to those on the lines of the file, or lacks, and why. */
const BEYOND_THE_LINES: { readonly [name: string]: Tokens & { readonly cause: string } } = {
  'i-clear bde8ec04': { input: 252, output: 35, read: 12_249, written: 150, cause: 'a compaction writes no line' },
  'p-bigusage 7529af69': {
    input: 0,
    output: 0,
    read: 0,
    written: -50,
    cause: 'a line whose split adds up to 150 has a total of 100, which the account counts',
  },
  'i-interrupt 4d8ceba3': { input: 219, output: 202, read: 12_216, written: 150, cause: 'an answer was aborted' },
  'i-plan 9f15e0c9': { input: 6, output: 26, read: 12_003, written: 150, cause: 'a side query writes no line' },
  'i-slash a25e8d25': { input: 259, output: 17, read: 12_256, written: 150, cause: 'a side query writes no line' },
  'p-onlytool 6f7bcc1c': { input: 91, output: 14, read: 24_085, written: 300, cause: 'empty answers write no line' },
  'p-resume 7cbf1538': {
    input: 783,
    output: 53,
    read: 36_774,
    written: 450,
    cause: "a fork continues its parent's account",
  },
  'r-escqueue 1119a253': { input: 0, output: 276, read: 0, written: 0, cause: 'an answer was aborted' },
  'r-goal 200743c0': { input: 27, output: 60, read: 36_018, written: 450, cause: 'the checks of a goal write no line' },
  'r-goalstop ae58327d': {
    input: 36,
    output: 60,
    read: 36_027,
    written: 450,
    cause: 'the checks of a goal write no line',
  },
  'q-compact aa81f8f0': { input: 154, output: 35, read: 12_151, written: 150, cause: 'a compaction writes no line' },
  'q-twop d5717998': {
    input: -174,
    output: -79,
    read: -36_165,
    written: -450,
    cause: 'the other process has an account of its own',
  },
  'q-twoterm eade1b04': {
    input: -175,
    output: -96,
    read: -48_163,
    written: -600,
    cause: 'the other process has an account of its own',
  },
};

/** What an agent used in the session after its own: it counts there, but is exported with the session that started it. */
const BY_AGENTS_THAT_WENT_ON = [
  {
    startedIn: 'q-clearbg dc66bb22',
    wentOnIn: 'q-clearbg eacdac11',
    used: { input: 524, output: 122, read: 48_512, written: 600 },
  },
  {
    startedIn: 'q-branchbg cfe0d04c',
    wentOnIn: 'q-branchbg be6fe668',
    used: { input: 520, output: 123, read: 48_508, written: 600 },
  },
];

function add(a: Tokens, b: Tokens, sign = 1): Tokens {
  return {
    input: a.input + sign * b.input,
    output: a.output + sign * b.output,
    read: a.read + sign * b.read,
    written: a.written + sign * b.written,
  };
}

/** What an account has in addition to what is exported with its session. */
function findDifference(name: string): Tokens {
  let difference = BEYOND_THE_LINES[name] ?? { input: 0, output: 0, read: 0, written: 0 };
  for (const { startedIn, wentOnIn, used } of BY_AGENTS_THAT_WENT_ON) {
    if (name === wentOnIn) difference = add(difference, used);
    if (name === startedIn) difference = add(difference, used, -1);
  }
  return difference;
}

describe("the exported tokens equal Claude Code's own account", () => {
  test.each(sessions)('of $name', async ({ name, recording, path, account }) => {
    const exported = await exportedOf(recording, basename(path, '.jsonl'));
    const [first] = exported;
    if (first) exported.set(first[0], add(first[1], findDifference(name)));
    expect(Object.fromEntries(exported)).toEqual(Object.fromEntries(account));
  });

  test('of 63 sessions, in 11 of them but for known tokens that lines do not have, in 2 without those of another process', () => {
    expect({ sessions: sessions.length, beyond: Object.keys(BEYOND_THE_LINES).length }).toEqual({
      sessions: 63,
      beyond: 13,
    });
  });
});
