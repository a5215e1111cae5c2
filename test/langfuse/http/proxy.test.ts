import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { Post } from '../../../src/langfuse/http/post.js';
import { askForProject } from '../../../src/langfuse/project.js';
import { otlpEndpoint } from '../../../src/langfuse/receiver.js';
import { LangfuseServer, langfuseAt } from '../../support/langfuse-server.js';
import { assistant, SESSION, user } from '../../support/lines.js';
import { Workplace } from '../../support/program.js';
import { besideSilence } from '../../support/silence.js';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** A proxy that passes requests on and keeps their targets. */
async function startProxy() {
  const targets: string[] = [];
  const proxy = createServer((incoming, outgoing) => {
    targets.push(incoming.url ?? '');
    const { method, headers } = incoming;
    const onward = request(incoming.url ?? '', { method: method ?? 'GET', headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  return { url, targets, stop: () => proxy.closeAllConnections() ?? proxy.close() };
}

async function statusOf(url: string): Promise<number> {
  const post = new Post(otlpEndpoint(langfuseAt(url)));
  const { status } = await post.send('{"resourceSpans":[]}', 5_000);
  await post.close();
  return status;
}

test('goes through the proxy that the environment names, unless NO_PROXY names the host', async () => {
  const server = await LangfuseServer.start();
  const proxy = await startProxy();
  vi.stubEnv('HTTP_PROXY', proxy.url);
  vi.stubEnv('NO_PROXY', '');
  expect(await statusOf(server.url)).toBe(200);
  expect(proxy.targets).toEqual([`${server.url}/api/public/otel/v1/traces`]);
  vi.stubEnv('NO_PROXY', '127.0.0.1');
  expect(await statusOf(server.url)).toBe(200);
  expect(proxy.targets).toHaveLength(1);
  proxy.stop();
  await server.stop();
});

test('a proxy that takes the connection and says nothing is left when the time is over', () =>
  besideSilence(async (url) => {
    vi.stubEnv('HTTPS_PROXY', url);
    vi.stubEnv('NO_PROXY', '');
    const langfuse = langfuseAt('https://langfuse.test');
    const post = new Post(otlpEndpoint(langfuse));
    await expect(post.send('{"resourceSpans":[]}', 200)).rejects.toThrow('no answer within 200 ms');
    await expect(askForProject(langfuse, 200)).rejects.toThrow('no answer within 200 ms');
  }));

test('nor does it keep the hook', () =>
  besideSilence(async (url) => {
    const workplace = await Workplace.open();
    workplace.env = {
      ...workplace.env,
      LANGFUSE_BASE_URL: 'https://langfuse.test',
      HTTPS_PROXY: url,
      CC_LANGFUSE_TIMEOUT: '800',
    };
    const path = join(workplace.home, `${SESSION}.jsonl`);
    writeFileSync(path, `${JSON.stringify(user('q'))}\n${JSON.stringify(assistant('m', 'a'))}\n`);
    const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(workplace.state[SESSION]).toMatchObject({
      pending: { reason: expect.stringMatching(/no answer|out of time/) },
    });
    await workplace.close();
  }));
