import { cpSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { assistant, jsonLines, SESSION, user } from '../support/lines.js';
import { run, Workplace } from '../support/program.js';
import { recordings } from '../support/recording.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
  workplace.server.isOlder = true;
});

afterEach(() => workplace.close());

const endpoints = () => workplace.server.requests.map(({ path }) => path.replace('/api/public/', ''));
const names = () => workplace.server.observations.map(({ name }) => name);

/** Runs Stop after so many turns. */
function stop(turns: number) {
  const path = join(workplace.home, `${SESSION}.jsonl`);
  const lines = Array.from({ length: turns }, (_, n) => [
    user(`q${n}`, { uuid: `u${n}` }),
    assistant(`m${n}`, `a${n}`),
  ]).flat();
  writeFileSync(path, jsonLines(lines));
  return workplace.hook({ session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' });
}

const INGESTION_CODE = 'langfuse-ingestion-ingestion-transport.cjs';

/** Returns the files of the program that it loads while `work` runs. */
async function loadedBy(work: () => Promise<unknown>): Promise<string[]> {
  const list = join(workplace.home, 'loaded.json');
  const spy = join(workplace.home, 'spy.cjs');
  writeFileSync(
    spy,
    `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(list)}, JSON.stringify(Object.keys(require.cache))))`,
  );
  workplace.env = { ...workplace.env, NODE_OPTIONS: `--require ${spy}` };
  await work();
  return JSON.parse(readFileSync(list, 'utf8')).map((path: string) => path.replace(/^.*\//, ''));
}

describe('the hook', () => {
  test('finds out that a server is older, and sends each turn by the ingestion API', async () => {
    for (const turns of [1, 2]) expect(await stop(turns)).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
    expect(names().filter((name) => name.startsWith('Turn'))).toEqual(['Turn 1', 'Turn 2']);
    expect(endpoints()).toEqual(['otel/v1/traces', 'ingestion', 'ingestion']);
    expect(workplace.log).toEqual([]);
    expect(workplace.state[SESSION]).toMatchObject({ turnCount: 2 });
  });

  test('loads the code for the ingestion API only for an older server', async () => {
    expect(await loadedBy(() => stop(1))).toContain(INGESTION_CODE);
    workplace.server.isOlder = false;
    await stop(2);
    expect(await loadedBy(() => stop(3))).not.toContain(INGESTION_CODE);
    expect(names()).toContain('Turn 3');
  });

  test('logs an observation that an older server refuses, and sends the others', async () => {
    workplace.server.ingested.refuse = ({ type }) => (type === 'generation-create' ? 400 : undefined);
    await stop(1);
    const span = expect.stringMatching(/^generation /);
    expect(workplace.log).toMatchObject([{ msg: 'the server refuses an observation, it is skipped', span }]);
    expect(names()).toEqual(['Turn 1']);
    expect(workplace.state[SESSION]).not.toHaveProperty('pending');
  });

  test('keeps the turn and says what to do if CC_LANGFUSE_TRANSPORT is ingestion but the server is Langfuse 4', async () => {
    workplace.server.isOlder = false;
    const { env } = workplace;
    workplace.env = { ...env, CC_LANGFUSE_TRANSPORT: 'ingestion' };
    await stop(1);
    const reason = expect.stringContaining('unset CC_LANGFUSE_TRANSPORT');
    expect(workplace.log).toMatchObject([{ level: 'warn', msg: reason }]);
    expect(workplace.state[SESSION]).toMatchObject({ pending: { reason } });
    workplace.env = env;
    await stop(1);
    expect(names()).toContain('Turn 1');
  });

  test('sends to an older server through the proxy that the environment names', async () => {
    const targets: (string | undefined)[] = [];
    const proxy = createServer((incoming, outgoing) => {
      targets.push(incoming.url);
      const { method = 'GET', headers } = incoming;
      const onward = request(incoming.url ?? '', { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      incoming.pipe(onward);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as AddressInfo;
    workplace.env = { ...workplace.env, HTTP_PROXY: `http://127.0.0.1:${port}`, NO_PROXY: '' };
    await stop(1);
    expect(names()).toContain('Turn 1');
    expect(targets).toContain(`${workplace.server.url}/api/public/ingestion`);
    proxy.closeAllConnections();
    proxy.close();
  });
});

test('a backfill sends all recordings to an older server, once', async () => {
  for (const { folder } of recordings()) cpSync(join(folder, 'projects'), workplace.projects, { recursive: true });
  const before = new Date(Date.now() - 3_600_000);
  for (const name of readdirSync(workplace.projects, { recursive: true, encoding: 'utf8' })) {
    utimesSync(join(workplace.projects, name), before, before);
  }
  const { exitCode, stdout, stderr } = await run(['backfill', '--yes', '--all', '--json'], workplace.env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  const { sessions } = JSON.parse(stdout);
  expect(sessions.length).toBeGreaterThanOrEqual(recordings().length);
  const turns = workplace.server.observations.filter(({ parentId }) => parentId === undefined);
  expect(turns.length).toBeGreaterThan(recordings().length);
  const ids = workplace.server.ingested.events.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  const again = await run(['backfill', '--yes', '--all', '--json'], workplace.env);
  expect(again.exitCode).toBe(0);
  expect(workplace.server.ingested.events).toHaveLength(ids.length);
});
