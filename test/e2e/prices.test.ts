import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { account, accountLine, variedCounts } from '../support/cost-account.js';
import { appendLines, appendTurn } from '../support/lines.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const NEW = 'claude-new-9';

/** Writes sessions with an account in which the model has this name. */
function writeSessions(count: number, model = NEW): void {
  for (let n = 1; n <= count; n += 1) {
    const path = workplace.transcriptOf(
      `${String(n).padStart(8, '0')}-0000-4000-8000-${model.length}00000000000`.slice(0, 36),
    );
    appendTurn(path, 1);
    appendLines(path, accountLine({ [model]: account([variedCounts(n)]) }));
  }
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
const withoutExactness = (text: string) => text.replace(/(exact to) \de-\d+/g, '$1');

describe('cc-langfuse prices', () => {
  test('shows what a model costs, and defines it in Langfuse', async () => {
    writeSessions(8);
    const { exitCode, stdout, stderr } = await prices(['--yes']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(withoutExactness(stdout)).toBe(`${TABLE}  → can be defined\ndefined claude-new-9\n`);
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
    expect(stdout).toContain(
      'Langfuse has prices for it (your own): input $4.40; output $22.00; cache read $0.22; cache write, 5 minutes $5.50; cache write, 1 hour $8.80 per million',
    );
  });

  test('leaves a model of the project alone that has the name and no price', async () => {
    writeSessions(8);
    const model = { modelName: NEW, matchPattern: '^mine$', isLangfuseManaged: false, prices: { total: 1 } };
    workplace.server.api.models.models.push(model);
    const { exitCode, stdout } = await prices(['--yes']);
    expect({ exitCode, posted: posted(), own: own() }).toEqual({ exitCode: 0, posted: [], own: [model] });
    expect(stdout).toContain('your project has a model of that name, without these prices (no prices)');
  });

  test('finds prices on any page of the list', async () => {
    writeSessions(8);
    const more = Array.from({ length: 250 }, (_, n) => `a-model-${n}`);
    const priced = { isLangfuseManaged: true, prices: { input: 1, output: 1 } };
    for (const name of [...more, NEW])
      workplace.server.api.models.models.push({ modelName: name, matchPattern: `(?i)^${name}$`, ...priced });
    expect((await prices(['--yes'])).stdout).toContain('Langfuse has prices for it (its own)');
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
    expect(stdout).toContain(
      '→ cannot be defined: its name does not say which model it is; define it in Langfuse by hand\n',
    );
  });

  test('does not define a model of which a price is missing', async () => {
    writeSessions(3);
    const { exitCode, stdout } = await prices(['--yes']);
    expect({ exitCode, own: own() }).toEqual({ exitCode: 0, own: [] });
    expect(stdout).toContain('→ cannot be defined: not known: input; output; cache read; cache write, 5 minutes;');
  });

  test('sends nothing with --dry-run, and shows what it would send', async () => {
    writeSessions(8);
    const { exitCode, stdout } = await prices(['--dry-run']);
    expect({ exitCode, posted: posted() }).toEqual({ exitCode: 0, posted: [] });
    const [, json = ''] = stdout.split('POST /api/public/models ');
    expect(JSON.parse(json)).toEqual({
      modelName: NEW,
      matchPattern: '(?i)^(anthropic/)?claude-new-9$',
      unit: 'TOKENS',
      pricingTiers: [{ name: 'Standard', isDefault: true, priority: 0, conditions: [], prices: LEARNED }],
    });
  });

  test.each([
    ['y\r', 'defined claude-new-9', 1],
    ['\r', 'nothing was sent', 0],
  ])('asks in the terminal, and takes %j as the answer', async (answer, outcome, defined) => {
    writeSessions(8);
    const { exitCode, screen } = await runInTerminal(['prices'], workplace, { '[y/N]': answer });
    expect(exitCode).toBe(0);
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
      stderr: 'cc-langfuse: claude-new-9 was not defined: the server answers 400: no, thanks\n',
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
