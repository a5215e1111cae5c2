import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import table from '../../src/costs/price-table.json' with { type: 'json' };
import { ACCOUNT_PRICES, type AccountCounts, account, accountLine, variedCounts } from '../support/cost-account.js';
import { fieldsOfJson } from '../support/cost-docs.js';
import { sessionIdOf } from '../support/generated.js';
import { assistant, jsonLines, user } from '../support/lines.js';
import type { StoredModel } from '../support/model-store.js';
import { NOON_ZONE } from '../support/noon.js';
import { PROGRAM, run, Workplace } from '../support/program.js';
import { recording, recordings } from '../support/recording.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

/** In the US, where all responses here ran, it costs what the support's accounts say. */
const MODEL = 'claude-opus-5-5';
const SOURCE = `prices: list of ${table.date} (Anthropic)`;
const cost = (...args: string[]) => run(['cost', ...args], { HOME: workplace.home, TZ: 'UTC' });
const json = async (...args: string[]) => JSON.parse((await cost('--json', ...args)).stdout);
const memory = () => join(workplace.stateFolder, 'cc-langfuse_index');

function usageOf(counts: AccountCounts): object {
  return {
    inference_geo: 'us',
    input_tokens: counts.inputTokens ?? 0,
    output_tokens: counts.outputTokens ?? 0,
    cache_read_input_tokens: counts.cacheReadInputTokens ?? 0,
    cache_creation: {
      ephemeral_5m_input_tokens: counts.cacheCreationEphemeral5mInputTokens ?? 0,
      ephemeral_1h_input_tokens: counts.cacheCreationEphemeral1hInputTokens ?? 0,
    },
  };
}

/** The lines of a response at a time; `more` has further fields of its line. */
function response(n: number, timestamp: string, more: object = {}): object[] {
  const message = { id: `m${n}`, role: 'assistant', model: MODEL, content: 'a', usage: usageOf(variedCounts(n)) };
  return [
    user('q', { uuid: `u${n}`, timestamp, cwd: '/home/dev/one' }),
    { type: 'assistant', message, timestamp, cwd: '/home/dev/one', gitBranch: 'main', ...more },
  ];
}

function write(n: number, ...lines: (object | string)[]): string {
  const path = workplace.transcriptOf(sessionIdOf(n));
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, jsonLines(lines));
  return path;
}

/** Line of an account that has added up these responses. */
const sum = (...responses: number[]) => accountLine({ [MODEL]: account(responses.map(variedCounts)) });

/** Sessions of one response each, with an account. */
function writePaid(count: number): void {
  for (let n = 1; n <= count; n += 1) write(n, ...response(n, `2026-10-0${n}T12:00:00.000Z`), sum(n));
}

function dollarsOf(n: number): number {
  const counts = variedCounts(n);
  const kinds = Object.keys(counts) as (keyof AccountCounts)[];
  return kinds.reduce((dollars, kind) => dollars + (counts[kind] ?? 0) * ACCOUNT_PRICES[kind], 0);
}

/** What the cached tokens would have cost as input, minus what they cost. */
function savedBy(n: number): number {
  const { cacheReadInputTokens: read = 0, ...counts } = variedCounts(n);
  const { cacheCreationEphemeral5mInputTokens: for5m = 0, cacheCreationEphemeral1hInputTokens: for1h = 0 } = counts;
  const cost = (tokens: number, kind: keyof AccountCounts) =>
    tokens * (ACCOUNT_PRICES.inputTokens - ACCOUNT_PRICES[kind]);
  return (
    cost(read, 'cacheReadInputTokens') +
    cost(for5m, 'cacheCreationEphemeral5mInputTokens') +
    cost(for1h, 'cacheCreationEphemeral1hInputTokens')
  );
}

function tokensOf(n: number): number {
  return Object.values(variedCounts(n)).reduce((tokens, count) => tokens + count, 0);
}

describe('cost', () => {
  test('shows dollars and tokens by day, with a bar for each and the sum', async () => {
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1), ...response(2, '2026-10-02T12:00:00.000Z'), sum(1, 2));
    expect((await cost()).stdout.split('\n')).toEqual([
      'day         dollars  tokens  output  cache read',
      '2026-10-01  $0.0047  13,147      33      12,911  ━━━━━━━━━━━━━━',
      '2026-10-02  $0.0067  14,242      72      13,822  ━━━━━━━━━━━━━━━━━━━━',
      'total       $0.0115  27,389     105      26,733',
      '',
      `the cache saved ≈ $${(savedBy(1) + savedBy(2)).toFixed(4)}, list price`,
      SOURCE,
      '',
    ]);
  });

  test('takes 1.1 times the price for what had to run in the US', async () => {
    const elsewhere = JSON.stringify(response(9, '2026-10-09T12:00:00.000Z')).replace('"us"', '"global"');
    write(8, ...response(9, '2026-10-09T12:00:00.000Z'));
    write(9, ...JSON.parse(elsewhere.replaceAll('m9', 'm8')));
    const { rows } = await json('--by', 'session');
    const list = (n: number) =>
      rows.find(({ session }: { session: string }) => session === sessionIdOf(n)).listPriceDollars;
    expect(list(8)).toBeCloseTo(dollarsOf(9), 10);
    expect(list(9)).toBeCloseTo(dollarsOf(9) / 1.1, 10);
  });

  test('takes list prices for what no account includes, and never adds that to dollars', async () => {
    writePaid(8);
    write(9, ...response(9, '2026-10-09T12:00:00.000Z'));
    const { rows } = await json('--by', 'session');
    const row = rows.find(({ session }: { session: string }) => session === sessionIdOf(9));
    expect(row).toMatchObject({ dollars: 0, tokensWithoutPrice: 0, tokens: tokensOf(9) });
    expect(row.listPriceDollars).toBeCloseTo(dollarsOf(9), 10);
    const { stdout } = await cost();
    expect(stdout).toMatch(/^2026-10-09 +≈\$0\.0068 /m);
    expect(stdout).toMatch(/^total +\$0\.0\d+ ≈\$0\.0068 /m);
    expect(stdout).toContain('≈ marks tokens that no account of Claude Code includes: ≈ $0.0068, list price');
    expect(stdout).toContain(SOURCE);
  });

  test('knows what came after the last account of a session', async () => {
    writePaid(8);
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1), ...response(9, '2026-10-01T13:00:00.000Z'));
    const { rows } = await json('--by', 'session');
    const row = rows.find(({ session }: { session: string }) => session === sessionIdOf(1));
    expect(row.dollars).toBeCloseTo(dollarsOf(1), 10);
    expect(row.listPriceDollars).toBeCloseTo(dollarsOf(9), 10);
  });

  describe('has what a process used that was killed, if the session went on', () => {
    const startedAt = (hour: number) => ({ startTime: Date.UTC(2026, 9, 1, hour) });
    const answered = (n: number) => response(n, `2026-10-01T${10 + n}:00:00.000Z`);
    const byHand = (...numbers: number[]) => numbers.reduce((dollars, n) => dollars + dollarsOf(n), 0);
    const expectSums = async (inAccount: number[], beside: number[]) => {
      const { total } = await json();
      expect(total).toMatchObject({
        dollars: expect.closeTo(byHand(...inAccount), 10),
        listPriceDollars: expect.closeTo(byHand(...beside), 10),
      });
    };
    const accountFrom = (hour: number, ...numbers: number[]) =>
      accountLine({ [MODEL]: account(numbers.map(variedCounts)) }, startedAt(hour));

    test('before there was an account, also if that has more than the responses, or another model', async () => {
      write(1, ...answered(1), ...answered(2), ...answered(3), accountFrom(13, 3, 4));
      await expectSums([3, 4], [1, 2]);
      const ofOther = JSON.parse(JSON.stringify(answered(1)).replaceAll(MODEL, 'claude-fable-5-2'));
      write(1, ...ofOther, ...answered(3), accountFrom(13, 3));
      const [, other] = (await json('--by', 'model')).rows;
      expect(other).toMatchObject({ model: 'claude-fable-5-2', dollars: 0, tokens: tokensOf(1) });
      expect(other.listPriceDollars).toBeGreaterThan(0);
    });

    test('between two lines of an account', async () => {
      write(1, ...answered(1), accountFrom(10, 1), ...answered(2), ...answered(3), accountFrom(10, 1, 3));
      await expectSums([1, 3], [2]);
      expect((await json('--by', 'prompt')).total.listPriceDollars).toBeCloseTo(byHand(2), 10);
    });

    test('unless an account lacks less than a response', async () => {
      const { outputTokens = 0, ...counts } = variedCounts(2);
      const aborted = { [MODEL]: account([variedCounts(1), { ...counts, outputTokens: outputTokens - 1 }]) };
      write(1, ...answered(1), ...answered(2), accountLine(aborted, startedAt(10)));
      expect((await json()).total.listPriceDollars).toBe(0);
    });

    test('unless it was no other process that was killed, but one that ended later', async () => {
      write(1, ...answered(1), ...answered(2), accountFrom(12, 2), ...answered(3), accountFrom(10, 1, 3));
      await expectSums([1, 2, 3], []);
    });
  });

  test('names a model without a list price, and no sum for its tokens', async () => {
    const lines = JSON.stringify(response(1, '2026-10-01T12:00:00.000Z'));
    write(1, ...JSON.parse(lines.replaceAll(MODEL, 'claude-new-9')));
    const { stdout } = await cost();
    expect(stdout).toContain(
      '+ and ? leave out 13,147 tokens in no account, of models without a list price: claude-new-9\n',
    );
    expect(stdout).toMatch(/^2026-10-01 +\? +13,147/m);
    expect(stdout).not.toContain('$');
    expect((await json()).total).toMatchObject({ dollars: 0, listPriceDollars: 0, tokensWithoutPrice: 13_147 });
  });

  test('shares a step over midnight among its days', async () => {
    write(1, ...response(1, '2026-10-01T23:59:00.000Z'), ...response(2, '2026-10-02T00:01:00.000Z'), sum(1, 2));
    const { rows, total } = await json();
    expect(rows.map(({ day, dollars }: { day: string; dollars: number }) => [day, dollars.toFixed(9)])).toEqual([
      ['2026-10-01', dollarsOf(1).toFixed(9)],
      ['2026-10-02', dollarsOf(2).toFixed(9)],
    ]);
    expect(total.dollars).toBeCloseTo(dollarsOf(1) + dollarsOf(2), 9);
  });

  test('--by tool says what was read and written for each tool, and how that is known', async () => {
    cpSync(join(recording('r-mcp').folder, 'projects'), workplace.projects, { recursive: true });
    const { stdout } = await cost('--by', 'tool');
    expect(stdout).toMatch(/^tool +dollars +tokens +output +cache read/);
    expect(stdout).toMatch(/^mcp__lab__picture +\$0\.0034 +8,617 +18 +8,462/m);
    expect(stdout).toContain(
      '\nthe lines of requests say where 100% of the tokens belong; the rest follows from how the context grew\n',
    );
    expect(await json('--by', 'tool')).toMatchObject({ exactTokens: 85_334, total: { tokens: 85_334 } });
    expect(await json('--by', 'agent')).not.toHaveProperty('exactTokens');
  });

  test('--top lists what cost 3 times the usual or more, and how many times', async () => {
    const minute = (n: number) => `2026-10-01T12:0${n}:00.000Z`;
    // The last turn has six responses.
    write(1, ...response(1, minute(1)), ...response(2, minute(2)));
    write(
      2,
      ...response(3, minute(1)),
      ...[4, 5, 6, 7, 8, 9].flatMap((n) => response(n, minute(n)).slice(n === 4 ? 0 : 1)),
    );
    write(3, ...response(21, minute(1)));
    const turns = [
      dollarsOf(1),
      dollarsOf(2),
      dollarsOf(3),
      dollarsOf(21),
      [4, 5, 6, 7, 8, 9].map(dollarsOf).reduce((a, b) => a + b),
    ];
    const [most = 0, , usual = 0] = turns.toSorted((a, b) => b - a);
    const { prompts, sessions } = await json('--top');
    expect(prompts).toMatchObject({ count: 5, usualDollars: expect.closeTo(usual, 9) });
    const times = Number((most / usual).toFixed(1));
    expect(prompts.above).toMatchObject([{ prompt: `${sessionIdOf(2)} turn 2`, times }]);
    expect(sessions).toMatchObject({ count: 3, above: [{ session: sessionIdOf(2) }] });
    const { stdout } = await cost('--top');
    expect(stdout).toContain(
      `5 prompts, usually $${usual.toFixed(4)}\n≈$${most.toFixed(4)}  ${times} ×  00000002 turn 2  2026-10-01 12:04  q\n\n${SOURCE}\n`,
    );
  });

  test('--by prompt shows the text of each prompt, which is in the transcript only', async () => {
    writePaid(1);
    const { stdout } = await cost('--by', 'prompt');
    expect(stdout).toMatch(/^00000001 turn 1 {2}2026-10-01 12:00 {2}q +\$0\.0047 +13,147/m);
    expect((await json('--by', 'prompt')).rows).toMatchObject([{ prompt: `${sessionIdOf(1)} turn 1` }]);
  });

  test('--since leaves out what was used before', async () => {
    writePaid(3);
    const { rows, total } = await json('--since', '2026-10-02');
    expect(rows.map(({ day }: { day: string }) => day)).toEqual(['2026-10-02', '2026-10-03']);
    expect(total.tokens).toBe(tokensOf(2) + tokensOf(3));
  });

  test('counts what subagents used', async () => {
    cpSync(join(recording('p-agentfg').folder, 'projects'), workplace.projects, { recursive: true });
    expect((await json()).total).toMatchObject({ dollars: 0.0239514, tokens: 61_509, subagentTokens: 36_885 });
    expect((await cost()).stdout).toContain('subagents used 60% of the tokens');
  });

  test('names a repository by its remote, and a branch with its repository', async () => {
    const folder = join(workplace.home, 'code');
    mkdirSync(join(folder, '.git'), { recursive: true });
    writeFileSync(join(folder, '.git', 'config'), '[remote "origin"]\n\turl = git@host.example:team/code.git\n');
    write(1, ...response(1, '2026-10-01T12:00:00.000Z', { cwd: folder }));
    write(2, ...response(2, '2026-10-01T12:00:00.000Z', { cwd: folder, gitBranch: 'fix' }));
    const keys = async (by: string) => (await json('--by', by)).rows.map((row: { [by: string]: string }) => row[by]);
    expect(await keys('repository')).toEqual(['host.example/team/code']);
    expect((await keys('branch')).toSorted()).toEqual(['host.example/team/code fix', 'host.example/team/code main']);
    expect(await keys('project')).toEqual([folder]);
  });

  test('cuts no name in output that a program reads', async () => {
    const cwd = `/home/dev/${'漢字'.repeat(40)}`;
    write(1, ...response(1, '2026-10-01T12:00:00.000Z', { cwd }));
    expect((await cost('--by', 'project')).stdout).toContain(`${cwd}  `);
  });

  test('fits a terminal of 40 columns, without colours', async () => {
    for (const { folder } of recordings()) cpSync(join(folder, 'projects'), workplace.projects, { recursive: true });
    const { screen } = await runInTerminal(
      ['cost', '--by', 'session'],
      { ...workplace, env: { ...workplace.env, NO_COLOR: '1' } },
      {},
      40,
    );
    const lines = screen.split(/\r?\n/).filter((line) => line.trim() !== '');
    expect(lines.length).toBeGreaterThan(50);
    expect(lines.filter((line) => line.length > 40)).toEqual([]);
    expect(screen).toContain('$0.2279');
  });

  test('counts a last line without a newline, and no half of a line', async () => {
    const path = write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    appendFileSync(path, jsonLines(response(2, '2026-10-01T13:00:00.000Z')).trimEnd());
    expect((await json()).total.tokens).toBe(tokensOf(1) + tokensOf(2));
    appendFileSync(path, `\n${jsonLines(response(3, '2026-10-01T14:00:00.000Z')).slice(0, -40)}`);
    expect((await json()).total.tokens).toBe(tokensOf(1) + tokensOf(2));
  });

  test('says that the sums leave out what cannot be read', async () => {
    mkdirSync(dirname(workplace.projects), { recursive: true });
    writeFileSync(workplace.projects, 'in the way');
    expect(await cost('--csv')).toMatchObject({
      exitCode: 1,
      stderr: `${workplace.projects} cannot be read (ENOTDIR): the sums leave it out\n`,
    });
  });

  test.each([['day'], ['agent']])('counts by %s the file of a subagent once it can be read again', async (by) => {
    const path = write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    const agent = join(path.replace(/\.jsonl$/, ''), 'subagents', 'agent-a1.jsonl');
    mkdirSync(dirname(agent), { recursive: true });
    writeFileSync(agent, jsonLines(response(2, '2026-10-01T12:00:01.000Z')));
    const fault = join(workplace.home, 'fault.cjs');
    const code = `const fs = require('node:fs'), open = fs.openSync;
      fs.openSync = (path, ...more) => {
        if (path === ${JSON.stringify(agent)}) throw Object.assign(new Error(), { code: 'EIO' });
        return open(path, ...more);
      };`;
    writeFileSync(fault, code);
    const env = { HOME: workplace.home, NODE_OPTIONS: `--require ${fault}` };
    const { exitCode, stdout, stderr } = await run(['cost', '--by', by, '--json'], env);
    expect({ exitCode, stderr, tokens: JSON.parse(stdout).total.tokens }).toEqual({
      exitCode: 1,
      stderr: `${agent} cannot be read (EIO): the sums leave it out\n`,
      tokens: tokensOf(1),
    });
    expect((await json('--by', by)).total.tokens).toBe(tokensOf(1) + tokensOf(2));
  });

  test.runIf(existsSync('/dev/full')).each([['--csv'], ['--json'], ['--by=day']])(
    'says with %s that the output could not be written',
    async (option) => {
      write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
      const full = openSync('/dev/full', 'w');
      const { status, stderr } = spawnSync(process.execPath, [PROGRAM, 'cost', option], {
        env: { HOME: workplace.home },
        stdio: ['ignore', full, 'pipe'],
        encoding: 'utf8',
      });
      closeSync(full);
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: 'cc-langfuse: the output cannot be written (ENOSPC)\n',
      });
    },
  );

  test.skipIf(process.platform === 'win32')(
    'counts a project whose folder is a link, but none twice that has another name',
    async () => {
      write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
      const elsewhere = join(workplace.home, 'disk');
      mkdirSync(elsewhere);
      writeFileSync(join(elsewhere, `${sessionIdOf(2)}.jsonl`), jsonLines(response(2, '2026-10-02T12:00:00.000Z')));
      symlinkSync(elsewhere, join(workplace.projects, '-linked'));
      symlinkSync(dirname(workplace.transcriptOf(sessionIdOf(1))), join(workplace.projects, '-renamed'));
      symlinkSync(join(workplace.home, 'gone'), join(workplace.projects, '-gone'));
      symlinkSync(workplace.projects, join(workplace.projects, '-circle'));
      const { stdout, stderr, exitCode } = await cost('--json', '--by', 'session');
      expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
      expect(JSON.parse(stdout).total.tokens).toBe(tokensOf(1) + tokensOf(2));
      const listed = await run(['sessions', '--json'], { HOME: workplace.home });
      const ids = JSON.parse(listed.stdout).map(({ sessionId }: { sessionId: string }) => sessionId);
      expect(ids.toSorted()).toEqual([sessionIdOf(1), sessionIdOf(2)]);
    },
  );

  test('says so if there is nothing', async () => {
    expect(await cost()).toMatchObject({ exitCode: 0, stdout: '', stderr: 'no session on disk has used anything\n' });
    expect(await cost('--since', '7d')).toMatchObject({
      stderr: 'no session on disk has used anything in that time\n',
    });
    expect(await cost('--top')).toMatchObject({ stdout: '', stderr: 'no session on disk has a known cost\n' });
    expect(await json()).toMatchObject({ by: 'day', rows: [], total: { dollars: 0, tokens: 0 } });
  });

  test.each([
    [
      ['--by', 'week'],
      '--by week: expected day, project, session, model, repository, branch, agent, skill, command, prompt, tool or mcp',
    ],
    [['--json', '--csv'], '--json and --csv: choose one of them'],
    [['--check', '--csv'], '--check and --csv: choose one of them'],
    [['--check', '--by', 'day'], '--check and --by: choose one of them'],
    [['--top', '--check'], '--top and --check: choose one of them'],
    [['--top', '--by', 'day'], '--top and --by: choose one of them'],
    [['--since', 'x'], '--since x: expected 30m, 12h, 7d, 2w or 2026-11-01'],
    [['x'], 'x: cost takes no operands; see cost --help'],
  ])('refuses %j in one line with exit code 2', async (args, message) => {
    expect(await cost(...args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${message}\n` });
  });
});

describe("the prices of the user's Langfuse", () => {
  const TODAY = new Date().toISOString().slice(0, '2026-11-20'.length);
  const KINDS = {
    input: 'inputTokens',
    output: 'outputTokens',
    cache_read_input_tokens: 'cacheReadInputTokens',
    cache_creation_input_tokens: 'cacheCreationEphemeral5mInputTokens',
    input_cache_creation_5m: 'cacheCreationEphemeral5mInputTokens',
    input_cache_creation_1h: 'cacheCreationEphemeral1hInputTokens',
  } as const;
  /** Twice those of the table. */
  const twice = (factor = 2) =>
    Object.fromEntries(Object.entries(KINDS).map(([kind, name]) => [kind, (ACCOUNT_PRICES[name] / 1.1) * factor]));
  const define = (model: Partial<StoredModel> = {}) =>
    workplace.server.api.models.models.push({
      modelName: 'mine',
      matchPattern: `^${MODEL}$`,
      isLangfuseManaged: false,
      prices: twice(),
      ...model,
    });
  const withKeys = (...args: string[]) => run(['cost', ...args], { ...workplace.env, TZ: 'UTC' });
  const listPrice = async () => JSON.parse((await withKeys('--json')).stdout).total.listPriceDollars;
  const asked = () => workplace.server.requests.filter(({ path }) => path.startsWith('/api/public/models')).length;
  const remembered = () => join(workplace.stateFolder, 'cc-langfuse_models.json');

  test('come before those of the table, and are asked once a day', async () => {
    define();
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    expect((await withKeys()).stdout).toContain(`prices: your Langfuse of ${TODAY}\n`);
    expect(await listPrice()).toBeCloseTo(2 * dollarsOf(1), 10);
    expect((await run(['sessions'], workplace.env)).stdout).toContain(
      `≈ $${(2 * dollarsOf(1)).toFixed(4)}, list price`,
    );
    expect(asked()).toBe(1);
  });

  test('take the tier for the US, if there is one', async () => {
    const conditions = [
      { source: 'model_parameters' as const, key: 'inference_geo', operator: 'in' as const, values: ['us'] },
    ];
    define({ tiers: [{ name: 'US', isDefault: false, priority: 1, conditions, prices: twice(5) }] });
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    expect(await listPrice()).toBeCloseTo((5 / 1.1) * dollarsOf(1), 10);
  });

  test.each<[string, Partial<StoredModel>]>([
    ['does not define it', { matchPattern: '^other$' }],
    ['lacks a price of it', { prices: { input: 1, output: 1 } }],
    ['has a price below zero', { prices: { ...twice(), output: -1 } }],
  ])('leave a model to the table if Langfuse %s', async (_, model) => {
    define(model);
    const lines = JSON.stringify(response(1, '2026-10-01T12:00:00.000Z'));
    write(1, ...JSON.parse(lines), ...JSON.parse(lines.replaceAll(MODEL, 'unknown').replaceAll('m1', 'm2')));
    expect((await withKeys()).stdout).toContain(SOURCE);
    expect(await listPrice()).toBeCloseTo(dollarsOf(1), 10);
  });

  test('leave only some models to the table, and name them', async () => {
    define({ matchPattern: '^claude-new-9$' });
    const lines = JSON.stringify(response(1, '2026-10-01T12:00:00.000Z'));
    write(1, ...JSON.parse(lines), ...JSON.parse(lines.replaceAll(MODEL, 'claude-new-9').replaceAll('m1', 'm2')));
    expect((await withKeys()).stdout).toContain(
      `prices: your Langfuse of ${TODAY}; for ${MODEL} the list of ${table.date} (Anthropic)\n`,
    );
    expect(await listPrice()).toBeCloseTo(3 * dollarsOf(1), 10);
  });

  test('are not asked if the accounts include all', async () => {
    writePaid(2);
    await withKeys();
    expect(asked()).toBe(0);
  });

  test('are not asked again for an hour if the server does not answer, and the table is taken', async () => {
    define();
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    workplace.server.misbehave = () => ({ status: 500 });
    expect(await withKeys()).toMatchObject({ exitCode: 0, stderr: '', stdout: expect.stringContaining(SOURCE) });
    workplace.server.misbehave = () => undefined;
    expect(await listPrice()).toBeCloseTo(dollarsOf(1), 10);
    expect(asked()).toBe(1);
  });

  test('are asked for a number of pages that a server can have', async () => {
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    const body = JSON.stringify({ data: [], meta: { totalPages: 1_000_000_000 } });
    workplace.server.misbehave = () => ({ status: 200, body });
    expect(await listPrice()).toBeCloseTo(dollarsOf(1), 10);
    expect(asked()).toBeGreaterThan(1);
    expect(asked()).toBeLessThanOrEqual(50);
  });

  test('are not asked with keys that may not read, or that nobody gave', async () => {
    define();
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    await cost();
    expect(asked()).toBe(0);
    workplace.server.misbehave = ({ method }) => (method === 'GET' ? { status: 403 } : undefined);
    expect(await listPrice()).toBeCloseTo(dollarsOf(1), 10);
    expect(await listPrice()).toBeCloseTo(dollarsOf(1), 10);
    expect(asked()).toBe(1);
  });

  test.each<[string, (file: object) => object]>([
    ['of another destination', (file) => ({ ...file, destination: 'x' })],
    ['of yesterday', (file) => ({ ...file, at: Date.now() - 86_400_001 })],
    ['from the future', (file) => ({ ...file, at: Date.now() + 86_400_000 })],
    ['damaged', () => ({ models: 'x' })],
  ])('are asked again if what is remembered is %s', async (_, change) => {
    define();
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    await withKeys();
    writeFileSync(remembered(), JSON.stringify(change(JSON.parse(readFileSync(remembered(), 'utf8')))));
    expect(await listPrice()).toBeCloseTo(2 * dollarsOf(1), 10);
    expect(asked()).toBe(2);
  });
});

test('with a subscription the dollars are API value', async () => {
  write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1));
  expect((await json()).subscription).toBe(false);
  const content = { oauthAccount: { organizationType: 'claude_max' } };
  writeFileSync(join(workplace.home, '.claude.json'), JSON.stringify(content));
  const { stdout } = await cost();
  expect(stdout).toMatch(/^day +API value +tokens /);
  expect(stdout).toContain('you are logged in with a subscription, which does not bill these dollars\n');
  expect((await json()).subscription).toBe(true);
  expect((await cost('--top')).stdout).toMatch(/\n\nyou are logged in with a subscription, .*\n$/);
  write(2, ...response(2, new Date().toISOString()));
  expect((await run(['status'], { HOME: workplace.home, TZ: NOON_ZONE })).stdout).toMatch(
    /^API value +today: ≈ \$0\.0067, list price$/m,
  );
});

describe('cost --check', () => {
  test('lists where accounts and list prices agree, and where they differ and why', async () => {
    writePaid(2);
    write(3, ...response(3, '2026-10-03T12:00:00.000Z'), accountLine({ [MODEL]: account([variedCounts(3)], 2) }));
    const { stdout, exitCode } = await cost('--check');
    const [agreed, doubled] = [dollarsOf(1) + dollarsOf(2), 2 * dollarsOf(3)];
    const shown = (dollars: number) => `$${dollars.toFixed(4)}`;
    expect({ exitCode, lines: stdout.split('\n') }).toEqual({
      exitCode: 0,
      lines: [
        `${MODEL}  2 account lines, ${shown(agreed)}: as the list has it`,
        '',
        '1 account line differs from the list',
        `${sessionIdOf(3)}  2026-10-03 12:00  ${MODEL}`,
        `  ${shown(doubled)} in the account, ≈ ${shown(doubled / 2)}, list price`,
        '  cause: it fits the price in fast mode and in the US, which no response names',
        '',
        SOURCE,
        '',
      ],
    });
    expect(await json('--check')).toEqual({
      agreements: [{ model: MODEL, accountLines: 2, dollars: expect.closeTo(agreed, 10) }],
      differences: [
        {
          session: sessionIdOf(3),
          at: '2026-10-03T12:00:00.000Z',
          model: MODEL,
          dollars: expect.closeTo(doubled, 10),
          listPriceDollars: expect.closeTo(doubled / 2, 10),
          cause: 'it fits the price in fast mode and in the US, which no response names',
        },
      ],
      prices: SOURCE.replace('prices: ', ''),
    });
    expect((await json('--check', '--since', '2026-10-03')).agreements).toEqual([]);
  });

  test('says so if there is no account', async () => {
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'));
    expect(await cost('--check')).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: 'no session on disk has an account of its costs\n',
    });
  });

  test('asks Langfuse for its prices, too', async () => {
    writePaid(2);
    const prices = { input: 1, output: 1, cache_read_input_tokens: 1, cache_creation_input_tokens: 1 };
    const written = { input_cache_creation_5m: 1, input_cache_creation_1h: 1 };
    const model = {
      modelName: 'mine',
      matchPattern: MODEL,
      isLangfuseManaged: false,
      prices: { ...prices, ...written },
    };
    workplace.server.api.models.models.push(model);
    const { stdout } = await run(['cost', '--check', '--json'], workplace.env);
    expect(JSON.parse(stdout).differences.map(({ cause }: { cause: string }) => cause)).toEqual([
      'your Langfuse has another price',
      'your Langfuse has another price',
    ]);
  });
});

test('the documentation has each field of --json', async () => {
  writePaid(4);
  write(5, ...response(5, '2026-10-05T12:00:00.000Z'), accountLine({ [MODEL]: account([variedCounts(5)], 20) }));
  const sums = await json('--since', '2026-10-01');
  const check = await json('--check');
  const top = await json('--top');
  const lists = [check.agreements, check.differences, top.sessions.above].map(([first]) => first);
  const fields = [sums, sums.total, check, top, top.sessions, ...lists].flatMap((each) => Object.keys(each));
  expect(fields.filter((field) => !fieldsOfJson().includes(field))).toEqual([]);
});

describe('cost --csv', () => {
  test('prints one line for each row, as RFC 4180 has it', async () => {
    writePaid(2);
    const { stdout } = await cost('--csv');
    const [head, ...lines] = stdout.split('\r\n');
    expect(head).toMatch(/^day,dollars,listPriceDollars,tokensWithoutPrice,tokens,/);
    expect(lines).toEqual([
      expect.stringMatching(/^2026-10-01,0\.00472692,0,0,13147,/),
      expect.stringMatching(/^2026-10-02,0\.00673684,0,0,14242,/),
      '',
    ]);
  });

  test.each([
    ['=HYPERLINK("http://x","y")', `"'=HYPERLINK(""http://x"",""y"")"`],
    ['+1', "'+1"],
    ['@x', "'@x"],
    ['-\u001b[31mred\u202e', "'-red"],
    ['/a,b "c"', '"/a,b ""c"""'],
  ])('writes the folder %j so that no program runs it', async (cwd, cell) => {
    write(1, ...response(1, '2026-10-01T12:00:00.000Z', { cwd }));
    const [, line = ''] = (await cost('--csv', '--by', 'project')).stdout.split('\r\n');
    expect(line.slice(0, cell.length + 1)).toBe(`${cell},`);
  });
});

describe('what is remembered of unchanged files', () => {
  test('is readable only by its owner, contains nothing that was said, and changes no figure', async () => {
    cpSync(join(recording('p-agentfg').folder, 'projects'), workplace.projects, { recursive: true });
    cpSync(join(recording('p-resume').folder, 'projects'), workplace.projects, { recursive: true });
    const first = (await cost('--json', '--by', 'session')).stdout;
    expect(statSync(memory()).mode & 0o777).toBe(0o600);
    const written = statSync(memory()).mtimeMs;
    expect(readFileSync(memory(), 'utf8')).not.toMatch(/prompt"|content|from-sub/);
    expect((await cost('--json', '--by', 'session')).stdout).toBe(first);
    expect(statSync(memory()).mtimeMs).toBe(written);
  });

  test('saves reading a file of the same size and time', async () => {
    const path = write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1));
    const then = new Date('2026-10-01T13:00:00.000Z');
    utimesSync(path, then, then);
    const before = await json();
    const { size } = statSync(path);
    writeFileSync(path, ' '.repeat(size));
    utimesSync(path, then, then);
    expect(await json()).toEqual(before);
    writeFileSync(path, ' '.repeat(size));
    expect((await json()).total.tokens).toBe(0);
  });

  test('is read again once a file has grown', async () => {
    const path = write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1));
    expect((await json()).total.tokens).toBe(tokensOf(1));
    appendFileSync(path, jsonLines([...response(2, '2026-10-01T13:00:00.000Z'), sum(1, 2)]));
    const { total } = await json();
    expect(total.tokens).toBe(tokensOf(1) + tokensOf(2));
    expect(total.dollars).toBeCloseTo(dollarsOf(1) + dollarsOf(2), 10);
  });

  test('is not needed: without a folder for it the costs are shown, too', async () => {
    write(1, ...response(1, '2026-10-01T12:00:00.000Z'), sum(1));
    writeFileSync(workplace.stateFolder, 'in the way');
    expect((await json()).total.tokens).toBe(tokensOf(1));
  });

  test('a fork that appears later is counted without what it copied', async () => {
    const copied = response(1, '2026-10-01T12:00:00.000Z');
    write(1, ...copied, assistant('m7', 'no usage'));
    expect((await json()).total.tokens).toBe(tokensOf(1));
    write(2, ...copied, ...response(2, '2026-10-01T14:00:00.000Z'));
    expect((await json()).total.tokens).toBe(tokensOf(1) + tokensOf(2));
  });
});
