import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listWidgets } from '../../src/commands/dashboard/charts.js';
import type { Misbehaviour } from '../support/langfuse-server.js';
import { type Environment, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const dashboard = (args: readonly string[] = ['--yes'], env: Environment = {}) =>
  run(['dashboard', ...args], { ...workplace.env, ...env });
const store = () => workplace.server.api.dashboards;
const only = () => {
  const [one, ...more] = store().dashboards.values();
  expect(more).toEqual([]);
  return one;
};
const chartsOf = (settings: Partial<Parameters<typeof listWidgets>[0]> = {}) =>
  listWidgets({ userId: undefined, gitIdentity: undefined, traceName: '{repository}', ...settings }).map(
    ({ widget }) => widget,
  );
const CHARTS = chartsOf();
const read = (ids: readonly string[]) =>
  ids.map((id) => {
    const { id: _, ...widget } = store().widgets.get(id) ?? { id };
    return widget;
  });
const placed = () => read(only()?.definition.widgets.map(({ widgetId }) => widgetId) ?? []);

describe('cc-langfuse dashboard', () => {
  test('makes a dashboard, and prints where it is', async () => {
    const { exitCode, stdout, stderr } = await dashboard();
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    const made = only();
    expect(stdout).toBe(`${workplace.server.url}/project/embedded/dashboards/${made?.id}\n`);
    expect(made).toMatchObject({
      name: 'Claude Code',
      filters: [{ column: 'tags', type: 'arrayOptions', operator: 'any of', value: ['claude-code'] }],
    });
    expect(placed()).toEqual(CHARTS);
  });

  test.each<[string, Environment, ReturnType<typeof chartsOf>]>([
    ["git's user", { LANGFUSE_USER_ID: 'git' }, chartsOf({ userId: 'whoever' })],
    ['names of the user’s own', { CC_LANGFUSE_TRACE_NAME: '{project}' }, chartsOf({ traceName: '{project}' })],
  ])('charts what the settings say: %s', async (_, env, charts) => {
    await dashboard(['--yes'], env);
    expect(placed()).toEqual(charts);
  });

  test('replaces its own charts, and keeps those that users have added', async () => {
    await dashboard();
    const made = only();
    const [first] = store().widgets.values();
    const before = [...store().widgets.keys()];
    if (!made || !first) throw new Error('nothing was made');
    store().widgets.set('mine', { ...first, id: 'mine', name: 'Mine', description: 'of a user' });
    const mine = { type: 'widget' as const, id: 'p1', widgetId: 'mine', x: 0, y: 40, width: 6, height: 6 };
    made.definition.widgets.push(mine);
    expect(await dashboard()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(only()?.id).toBe(made.id);
    expect(placed().slice(0, -1)).toEqual(CHARTS);
    expect(only()?.definition.widgets.at(-1)).toEqual(mine);
    expect([...store().widgets.keys()].filter((id) => before.includes(id))).toEqual([]);
    expect(store().widgets.size).toBe(CHARTS.length + 1);
  });

  test('leaves a chart of its own that a user has put on another dashboard', async () => {
    await dashboard();
    const [first] = only()?.definition.widgets ?? [];
    if (!first) throw new Error('nothing was made');
    const theirs = { id: 'theirs', name: 'Theirs', description: '', filters: [], definition: { widgets: [first] } };
    store().dashboards.set('theirs', theirs);
    expect(await dashboard()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(store().dashboards.get('theirs')).toEqual(theirs);
    expect(store().widgets.has(first.widgetId)).toBe(true);
  });

  test('does not touch a dashboard of the same name that someone else made', async () => {
    const theirs = { id: 'theirs', name: 'Claude Code', description: '', filters: [], definition: { widgets: [] } };
    store().dashboards.set('theirs', theirs);
    await dashboard();
    expect(store().dashboards.get('theirs')).toEqual(theirs);
    expect(store().dashboards.size).toBe(2);
  });

  test('does not filter by a tag that the traces do not have', async () => {
    await dashboard(['--yes'], { CC_LANGFUSE_AUTO_TAGS: 'skill' });
    expect(only()?.filters).toEqual([]);
  });

  test('prints what it would send with --dry-run, and asks no server', async () => {
    const { exitCode, stdout } = await dashboard(['--dry-run'], { LANGFUSE_SECRET_KEY: '' });
    expect({ exitCode, requests: workplace.server.requests }).toEqual({ exitCode: 0, requests: [] });
    const { dashboard: content, widgets } = JSON.parse(stdout);
    expect(content.name).toBe('Claude Code');
    expect(widgets.map(({ widget }: { widget: object }) => widget)).toEqual(CHARTS);
  });

  test.each([
    ['y\r', 'Make the dashboard "Claude Code" in project "Embedded" at', 1],
    ['\r', 'nothing was sent', 0],
  ])('asks in the terminal, and takes %j as the answer', async (answer, shown, made) => {
    const { exitCode, screen } = await runInTerminal(['dashboard'], workplace, { '[y/N]': answer });
    expect(exitCode).toBe(0);
    expect(screen).toContain(shown);
    expect(store().dashboards.size).toBe(made);
  });
});

describe('nothing is half made', () => {
  const misbehaveAt = (method: string, path: string, nth: number, misbehaviour: Misbehaviour) => {
    let count = 0;
    workplace.server.misbehave = (request) => {
      if (request.method !== method || !request.url?.startsWith(`/api/public/unstable/${path}`)) return undefined;
      count += 1;
      return count === nth ? misbehaviour : undefined;
    };
  };
  const refusal = { status: 400, body: '{"message":"no such measure"}' };

  test.each<[string, string, string, number, Misbehaviour, string]>([
    ['a chart is refused', 'POST', 'dashboard-widgets', 7, refusal, 'the chart "Turns by outcome" (400): "no such'],
    ['the dashboard is refused', 'POST', 'dashboards', 1, refusal, 'the server refuses the dashboard (400): "no such'],
    ['the connection breaks', 'POST', 'dashboard-widgets', 3, { disconnect: 'before taking' }, 'cannot be reached'],
    ['the keys may not do it', 'POST', 'dashboard-widgets', 1, { status: 403 }, 'refused the keys (403)'],
    ['an answer is of another form', 'POST', 'dashboards', 1, { body: '[]' }, 'its API has changed'],
  ])('if %s', async (_, method, path, nth, misbehaviour, message) => {
    misbehaveAt(method, path, nth, misbehaviour);
    const { exitCode, stdout, stderr } = await dashboard();
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^cc-langfuse: [^\n]+\n$/);
    expect(stderr).toContain(message);
    if (misbehaviour.body !== '[]') expect({ ...store(), widgets: store().widgets.size }).toMatchObject({ widgets: 0 });
  });

  test('if the second run fails, the first dashboard stays as it is', async () => {
    await dashboard();
    const before = structuredClone({ dashboards: [...store().dashboards], widgets: [...store().widgets] });
    misbehaveAt('PATCH', 'dashboards', 1, refusal);
    expect(await dashboard()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('; nothing was made\n') });
    expect({ dashboards: [...store().dashboards], widgets: [...store().widgets] }).toEqual(before);
  });

  test('if the server has no such API', async () => {
    store().exists = false;
    expect(await dashboard()).toMatchObject({
      exitCode: 1,
      stderr: 'cc-langfuse: this Langfuse has no API for dashboards (404): there is one since July 2026\n',
    });
  });

  test.each<[string, string[], Environment, number, RegExp]>([
    ['without a terminal', [], {}, 2, /there is no terminal to ask in: use --yes/],
    ['without keys', ['--yes'], { LANGFUSE_SECRET_KEY: '' }, 2, /dashboard needs a Langfuse server and its keys/],
    ['with an operand', ['x'], {}, 2, /dashboard takes no operands/],
    ['with wrong keys', ['--yes'], { LANGFUSE_SECRET_KEY: 'wrong' }, 1, /Langfuse refused the keys \(401\)/],
  ])('%s', async (_, args, env, exitCode, message) => {
    expect(await dashboard(args, env)).toMatchObject({ exitCode, stderr: expect.stringMatching(message) });
    expect({ dashboards: store().dashboards.size, widgets: store().widgets.size }).toEqual({
      dashboards: 0,
      widgets: 0,
    });
  });
});

test('the embedded server refuses a filter by the kind of usage, as Langfuse 4.16 does', async () => {
  const response = await fetch(`${workplace.server.url}/api/public/unstable/dashboard-widgets`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa('pk-lf-embedded:sk-lf-embedded')}` },
    body: JSON.stringify({
      name: 'x',
      view: 'observations',
      dimensions: [{ field: 'usageType' }],
      metrics: [{ measure: 'usageByType', agg: 'sum' }],
      filters: [{ column: 'usageType', type: 'stringOptions', operator: 'none of', value: ['total'] }],
      chartType: 'BAR_TIME_SERIES',
    }),
  });
  expect([response.status, await response.json()]).toEqual([
    400,
    { message: 'Unsupported filter column for view "observations": usageType' },
  ]);
});
