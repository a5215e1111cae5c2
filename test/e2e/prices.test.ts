import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AccountCounts, account, accountLine, variedCounts } from '../support/cost-account.js';
import { appendLines, assistant, at, user } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const NEW = 'claude-new-9';

/** Writes sessions with an account in which the model has this name, and a response that ran as `usage` says. */
function writeSessions(count: number, model = NEW, usage: object = {}, costsTimes = 1): void {
  for (let n = 1; n <= count; n += 1) {
    const path = pathOf(n, model, usage);
    appendLines(path, user(`question ${n}`, { uuid: `${path} u`, promptId: `p${n}`, timestamp: at(n * 10) }));
    appendLines(path, response(`${path} m`, variedCounts(n), model, usage, n));
    appendLines(path, accountLine({ [model]: account([variedCounts(n)], costsTimes) }));
  }
}

function pathOf(n: number, model: string, usage: object): string {
  const kind = `${model.length}${JSON.stringify(usage).length}`.padEnd(12, '0').slice(0, 12);
  return workplace.transcriptOf(`${String(n).padStart(8, '0')}-0000-4000-8000-${kind}`);
}

function response(id: string, counts: AccountCounts, model: string, usage: object, n: number): object {
  const { message, ...rest } = assistant(id, 'done', { uuid: id, timestamp: at(n * 10 + 5) }) as { message: object };
  const { cacheCreationEphemeral5mInputTokens: for5m, cacheCreationEphemeral1hInputTokens: for1h } = counts;
  const used = {
    input_tokens: counts.inputTokens,
    output_tokens: counts.outputTokens,
    cache_read_input_tokens: counts.cacheReadInputTokens,
    cache_creation: { ephemeral_5m_input_tokens: for5m, ephemeral_1h_input_tokens: for1h },
    ...usage,
  };
  return { ...rest, message: { ...message, model, usage: used } };
}

const prices = (args: readonly string[], env: Environment = {}) =>
  run(['prices', ...args], { ...workplace.env, ...env });
const posted = () =>
  workplace.server.requests.filter(({ path }) => path === '/api/public/models').map(({ status }) => status);
const own = () => workplace.server.api.models.models.filter(({ isLangfuseManaged }) => !isLangfuseManaged);

const LEARNED = {
  input: 0.0000044,
  output: 0.000022,
  cache_read_input_tokens: 0.00000022,
  input_cache_creation_5m: 0.0000055,
  input_cache_creation_1h: 0.0000088,
};

const TABLE = `claude-new-9  8 account lines, exact to
  input                    $4.40 per million tokens
  output                   $22.00 per million tokens
  cache read               $0.22 per million tokens
  cache write, 5 minutes   $5.50 per million tokens
  cache write, 1 hour      $8.80 per million tokens
`;
const host = () => new URL(workplace.server.url).host;
const conclusion = (stdout: string) => stdout.trimEnd();
const withoutExactness = (text: string) => text.replace(/(exact to) \de-\d+/g, '$1');

const IN_US = { inference_geo: 'us' };
const times = (factor: number) =>
  Object.fromEntries(Object.entries(LEARNED).map(([kind, price]) => [kind, Number((price * factor).toPrecision(12))]));
const tier = (name: string, priority: number, conditions: object[], prices: object) => {
  return { name, isDefault: false, priority, conditions, prices };
};
const when = (key: string, value: string) => ({ source: 'model_parameters', key, operator: 'in', values: [value] });

describe('prices by what else a price depends on', () => {
  /** What Langfuse computes for all that a backfill sends. */
  async function computeSum(): Promise<number> {
    workplace.letIdle();
    expect(await workplace.backfill('--all')).toMatchObject({ exitCode: 0 });
    return workplace.server.events.events.reduce((sum, { totalCost = 0 }) => sum + totalCost, 0);
  }
  const spent = (costsTimes: number, count = 8) =>
    Array.from({ length: count }, (_, index) => account([variedCounts(index + 1)], costsTimes).costUSD).reduce(
      (a, b) => a + b,
    );

  test('the US has a tier if sessions ran there, with the factor that is documented', async () => {
    writeSessions(8, NEW, IN_US, 1.1);
    const { exitCode, stdout, stderr } = await prices(['--yes', '--details']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(withoutExactness(stdout)).toBe(
      `${TABLE}  in the US (inference_geo)  1.1 times as much, as Anthropic documents. All sessions ran there: the prices above are derived by it

claude-new-9  defined at ${host()}, with prices for US
Costs appear on what arrives from now on. "cc-langfuse backfill --force" sends the rest again.
`,
    );
    expect(own()).toMatchObject([
      { prices: LEARNED, tiers: [tier('US', 1, [when('inference_geo', 'us')], times(1.1))] },
    ]);
    expect(await computeSum()).toBeCloseTo(spent(1.1), 12);
    expect(conclusion((await prices(['--yes'])).stdout)).toBe('claude-new-9  your project has prices for it');
  });

  test('fast mode has one if its sessions tell all its prices, in the US and elsewhere', async () => {
    writeSessions(8);
    writeSessions(8, NEW, { ...IN_US, speed: 'fast' }, 2.2);
    const { exitCode, stdout } = await prices(['--yes']);
    expect(exitCode).toBe(0);
    expect(conclusion(stdout)).toContain(`defined at ${host()}, with prices for Fast mode, US; Fast mode; US\n`);
    const [fast, inUs] = [when('speed', 'fast'), when('inference_geo', 'us')];
    expect(own()).toMatchObject([
      {
        prices: LEARNED,
        tiers: [
          tier('Fast mode, US', 1, [fast, inUs], times(2.2)),
          tier('Fast mode', 2, [fast], times(2)),
          tier('US', 3, [inUs], times(1.1)),
        ],
      },
    ]);
    expect(await computeSum()).toBeCloseTo(spent(1) + spent(2.2), 12);
  });

  test('fast mode has none if its sessions do not tell its prices', async () => {
    writeSessions(8);
    writeSessions(3, NEW, { speed: 'fast' }, 2);
    const { stdout } = await prices(['--yes']);
    expect(stdout).toContain('without a price for fast mode, which needs more sessions\n');
    expect(own()).toEqual([expect.not.objectContaining({ tiers: expect.anything() })]);
  });

  test('a model that Langfuse knows keeps its prices, and gets one for the US', async () => {
    writeSessions(8, 'claude-opus-5', IN_US);
    const fast = tier('Fast mode', 1, [when('speed', 'fast')], times(2 / 1.1)) as never;
    workplace.server.api.models.models = workplace.server.api.models.models.map((model) =>
      model.modelName === 'claude-opus-5' ? { ...model, prices: times(1 / 1.1), tiers: [fast] } : model,
    );
    const { exitCode, stdout } = await prices(['--yes']);
    expect(exitCode).toBe(0);
    expect(conclusion(stdout)).toContain(
      `claude-opus-5  defined at ${host()}, with the prices that Langfuse has, with prices for Fast mode, US; Fast mode; US\n`,
    );
    expect(await computeSum()).toBeCloseTo(spent(1), 12);
  });

  test('a model with other prices than those of the sessions stays as it is', async () => {
    writeSessions(8, NEW, IN_US, 1.1);
    const model = { modelName: NEW, matchPattern: `^${NEW}$`, isLangfuseManaged: false, prices: times(1.1) };
    workplace.server.api.models.models.push(model);
    const { stdout } = await prices(['--yes']);
    expect(own()).toEqual([model]);
    expect(conclusion(stdout)).toBe(
      'claude-new-9  your project has other prices (input $4.84, $4.40 in the sessions; output $24.20, $22.00 in the sessions; cache read $0.242, $0.22 in the sessions; cache write, 5 minutes $6.05, $5.50 in the sessions; cache write, 1 hour $9.68, $8.80 in the sessions): delete the model in Langfuse, and run prices again',
    );
  });

  test('nothing is defined for a model whose sessions mix them', async () => {
    for (let n = 1; n <= 8; n += 1) {
      const path = pathOf(n, NEW, {});
      appendLines(path, response('m1', variedCounts(n), NEW, IN_US, 1), response('m2', variedCounts(n), NEW, {}, 2));
      appendLines(path, accountLine({ [NEW]: account([variedCounts(n), variedCounts(n)]) }));
    }
    expect(conclusion((await prices(['--yes'])).stdout)).toBe(
      'claude-new-9  needs sessions in which all of it ran in one way: not partly in fast mode, and not partly in the US',
    );
    expect(own()).toEqual([]);
  });
});

describe('cc-langfuse prices', () => {
  test('defines what Langfuse lacks, and says so in one line for each model', async () => {
    writeSessions(8);
    writeSessions(3, 'claude-other-9');
    const { exitCode, stdout, stderr } = await prices(['--yes']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toBe(
      `claude-new-9    defined at ${host()}, with one price for each kind of token
claude-other-9  needs more varied sessions, short and long ones: run prices again some days later
Costs appear on what arrives from now on. "cc-langfuse backfill --force" sends the rest again.
`,
    );
    expect(own()).toEqual([
      { modelName: NEW, matchPattern: '(?i)^(anthropic/)?claude-new-9$', isLangfuseManaged: false, prices: LEARNED },
    ]);
    expect(workplace.server.api.models.find('Claude-New-9')?.modelName).toBe(NEW);
    expect(workplace.server.api.models.find('claude-new-90')).toBeUndefined();
  });

  test('shows the prices that are there already, and defines nothing twice', async () => {
    writeSessions(8);
    await prices(['--yes']);
    const { exitCode, stdout } = await prices(['--yes']);
    expect({ exitCode, posted: posted() }).toEqual({ exitCode: 0, posted: [200] });
    expect(conclusion(stdout)).toBe('claude-new-9  your project has prices for it');
  });

  test('leaves a model of the project alone that has the name and no price', async () => {
    writeSessions(8);
    const model = { modelName: NEW, matchPattern: '^mine$', isLangfuseManaged: false, prices: { total: 1 } };
    workplace.server.api.models.models.push(model);
    const { exitCode, stdout } = await prices(['--yes']);
    expect({ exitCode, posted: posted(), own: own() }).toEqual({ exitCode: 0, posted: [], own: [model] });
    expect(conclusion(stdout)).toBe(
      'claude-new-9  your project defines it without prices for input and output: delete the model in Langfuse, and run prices again',
    );
  });

  test('finds prices on any page of the list', async () => {
    writeSessions(8);
    const more = Array.from({ length: 250 }, (_, n) => `a-model-${n}`);
    const priced = { isLangfuseManaged: true, prices: { input: 0.0000044, output: 0.000022 } };
    for (const name of [...more, NEW])
      workplace.server.api.models.models.push({ modelName: name, matchPattern: `(?i)^${name}$`, ...priced });
    expect(conclusion((await prices(['--yes'])).stdout)).toBe('claude-new-9  Langfuse has prices for it');
    expect(own()).toEqual([]);
  });

  test.each([
    [`us.anthropic.${NEW}-v1:0`],
    [`arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.anthropic.${NEW}-v1:0`],
    [`${NEW}@20261001`],
    [`${NEW}[1m]`],
  ])('knows that %s is the model', async (name) => {
    writeSessions(8, name);
    expect((await prices(['--yes'])).exitCode).toBe(0);
    expect(own()).toMatchObject([{ modelName: NEW, prices: LEARNED }]);
  });

  test('does not define a model whose name is that of an application inference profile', async () => {
    writeSessions(8, 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc123');
    const { exitCode, stdout } = await prices(['--yes']);
    expect({ exitCode, own: own() }).toEqual({ exitCode: 0, own: [] });
    expect(conclusion(stdout)).toMatch(/ {2}its name does not say which model it is: define it in Langfuse by hand$/);
  });

  test('does not define a model of which a price is missing, and says why with --details', async () => {
    writeSessions(3);
    const { exitCode, stdout } = await prices(['--yes', '--details']);
    expect({ exitCode, own: own() }).toEqual({ exitCode: 0, own: [] });
    const [heading, input] = stdout.split('\n');
    expect(heading).toMatch(/^claude-new-9 {2}3 account lines, exact to /);
    expect(input).toBe(
      '  input                    the sessions cannot separate it from output; cache read; cache write, 5 minutes; cache write, 1 hour',
    );
    expect(stdout).toContain('\n\nclaude-new-9  needs more varied sessions');
  });

  test('sends nothing with --dry-run, and shows what it would send', async () => {
    writeSessions(8);
    const { exitCode, stdout } = await prices(['--dry-run']);
    expect({ exitCode, posted: posted() }).toEqual({ exitCode: 0, posted: [] });
    const [, json = ''] = /^POST \/api\/public\/models (.*?)\n\n/ms.exec(stdout) ?? [];
    expect(stdout).toContain(
      'claude-new-9  can be defined, with one price for each kind of token\nNothing was sent. "cc-langfuse prices" asks',
    );
    expect(JSON.parse(json)).toEqual({
      modelName: NEW,
      matchPattern: '(?i)^(anthropic/)?claude-new-9$',
      unit: 'TOKENS',
      pricingTiers: [{ name: 'Standard', isDefault: true, priority: 0, conditions: [], prices: LEARNED }],
    });
  });

  test.each([
    ['y\r', 'claude-new-9  defined at', 1],
    ['\r', 'Nothing was sent.', 0],
  ])('asks in the terminal, and takes %j as the answer', async (answer, outcome, defined) => {
    writeSessions(8);
    const { exitCode, screen } = await runInTerminal(['prices'], workplace, { '[y/N]': answer });
    expect(exitCode).toBe(0);
    expect(screen.replaceAll(/\s+/g, ' ')).toContain(
      'claude-new-9 input $4.40; output $22.00; cache read $0.22; cache write, 5 minutes $5.50; cache write, 1 hour $8.80 Dollars for a million tokens.',
    );
    expect(screen).toMatch(/Define claude-new-9 with these prices at 127\.0\.0\.1:\d+\?/);
    expect(screen).toContain(outcome);
    expect(own()).toHaveLength(defined);
  });

  test('says why the server refuses a model', async () => {
    writeSessions(8);
    workplace.server.misbehave = ({ method }) =>
      method === 'POST' ? { status: 400, body: '{"message":"no, thanks"}' } : undefined;
    expect(await prices(['--yes'])).toMatchObject({
      exitCode: 1,
      stderr: 'cc-langfuse: claude-new-9 was not defined: the server answers 400: "no, thanks"\n',
      stdout: `claude-new-9  not defined: ${host()} refuses it.\n`,
    });
  });

  test.each<[string, string[], Environment, number, RegExp]>([
    ['without a terminal', [], {}, 2, /there is no terminal to ask in: use --yes/],
    ['without keys', ['--yes'], { LANGFUSE_SECRET_KEY: '' }, 2, /prices needs a Langfuse server and its keys/],
    ['with an operand', ['x'], {}, 2, /prices takes no operands/],
    ['with wrong keys', ['--yes'], { LANGFUSE_SECRET_KEY: 'wrong' }, 1, /Langfuse refused the keys \(401\)/],
  ])('sends nothing %s', async (_, args, env, exitCode, message) => {
    writeSessions(8);
    const ended = await prices(args, env);
    expect(ended).toMatchObject({ exitCode, stderr: expect.stringMatching(message) });
    expect(own()).toEqual([]);
  });

  test('says so if no session has an account', async () => {
    expect(await prices(['--yes'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringMatching(/^no session on disk has an account/),
    });
  });
});

test('--json prints what was learned of each model, and what could be defined, and sends nothing', async () => {
  const { stdout: nothing } = await prices(['--json']);
  expect(JSON.parse(nothing)).toEqual({ models: [] });
  writeSessions(8);
  const { exitCode, stdout, stderr } = await prices(['--json']);
  expect({ exitCode, stderr, posted: posted() }).toEqual({ exitCode: 0, stderr: '', posted: [] });
  const { models } = JSON.parse(stdout);
  expect(models).toEqual([
    {
      model: NEW,
      conclusion: 'can be defined, with one price for each kind of token',
      definition: expect.objectContaining({ modelName: NEW, unit: 'TOKENS' }),
      learned: [{ fast: false, accountLines: 8, prices: expect.objectContaining(LEARNED) }],
    },
  ]);
  expect(await prices(['--json', '--yes'])).toMatchObject({
    exitCode: 2,
    stderr: 'cc-langfuse: --json and --yes: choose one of them\n',
  });
});
