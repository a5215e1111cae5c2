import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { listen } from '../support/doctor.js';
import { assistant, jsonLines, SESSION, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { withSilentServer } from '../support/silent-server.js';

/** Runs a Stop hook of a new session. Returns why the session is still to be sent, if it is. */
async function stop(workplace: Workplace): Promise<string | undefined> {
  const path = join(workplace.home, `${SESSION}.jsonl`);
  writeFileSync(path, jsonLines([user('q'), assistant('m', 'a')]));
  const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
  expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '' });
  return (workplace.state[SESSION] as { pending?: { reason: string } }).pending?.reason;
}

test('the hook ends at its deadline if a proxy accepts the connection but never answers', () =>
  withSilentServer(async (url) => {
    const workplace = await Workplace.open();
    workplace.env = {
      ...workplace.env,
      LANGFUSE_BASE_URL: 'https://langfuse.test',
      HTTPS_PROXY: url,
      CC_LANGFUSE_TIMEOUT: '800',
    };
    expect(await stop(workplace)).toMatch(/no answer|out of time/);
    await workplace.close();
  }));

test.each([
  ['ALL_PROXY', 'socks5', '127.0.0.1'],
  ['all_proxy', 'socks5h', '127.0.0.1'],
  ['HTTP_PROXY', 'socks4', 'me:hunter2@127.0.0.1'],
])('nothing is sent, through the proxy or around it, if %s names a %s proxy', async (variable, scheme, host) => {
  let connections = 0;
  const port = await listen(
    createServer((socket) => {
      connections += 1;
      socket.destroy();
    }),
  );
  const workplace = await Workplace.open();
  workplace.env = { ...workplace.env, [variable]: `${scheme}://${host}:${port}` };
  expect(await stop(workplace)).toBe(
    `${new URL(workplace.server.url).host} cannot be reached: ${variable} names a ${scheme} proxy, but only http and https proxies are supported`,
  );
  expect({ connections, requests: workplace.server.requests }).toEqual({ connections: 0, requests: [] });
  // A proxy for these URLs alone, or an exception from it, still counts.
  workplace.env = { ...workplace.env, NO_PROXY: '127.0.0.1' };
  expect(await stop(workplace)).toBeUndefined();
  expect(workplace.server.observations).toHaveLength(2);
  await workplace.close();
});

test('ALL_PROXY is used if it names an http proxy and no other variable names one', async () => {
  const workplace = await Workplace.open();
  const { url } = workplace.server;
  // A request through an http proxy names the whole URL, which the embedded server does not know.
  workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: 'http://langfuse.test', ALL_PROXY: url };
  expect(await stop(workplace)).toBeDefined();
  expect(workplace.server.requests.map(({ headers }) => headers.host)).toContain('langfuse.test');
  await workplace.close();
});
