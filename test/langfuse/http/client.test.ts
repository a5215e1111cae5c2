import { createServer, request } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { langfuseOtlp } from '../../../src/langfuse/endpoint.js';
import { HttpClient, type HttpRequest } from '../../../src/langfuse/http/client.js';
import { fetchProject } from '../../../src/langfuse/server.js';
import { LangfuseServer, langfuseAt } from '../../support/langfuse-server.js';
import { withSilentServer } from '../../support/silent-server.js';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

/** Lets `Date` stand still, so that a message names the time that was left when the request was made, on a busy machine, too. */
const stopClock = () => vi.useFakeTimers({ toFake: ['Date'] });

/** A proxy that forwards requests and records their targets. */
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

async function requestTo(url: string): Promise<HttpRequest> {
  const endpoint = langfuseOtlp(langfuseAt(url));
  const headers = await endpoint.readHeaders({ deadline: Date.now() });
  return { method: 'POST', url: endpoint.url, headers, body: '{"resourceSpans":[]}', isCompressed: true };
}

async function statusOf(url: string): Promise<number> {
  const client = new HttpClient();
  const { status } = await client.request(await requestTo(url), { deadline: Date.now() + 5_000 });
  await client.close();
  return status;
}

test('requests go through the proxy that the environment names, unless NO_PROXY names the host', async () => {
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

test('a request through a proxy that accepts the connection but never answers fails at its deadline', () =>
  withSilentServer(async (url) => {
    vi.stubEnv('HTTPS_PROXY', url);
    vi.stubEnv('NO_PROXY', '');
    stopClock();
    const failure = /no answer within 0\.2 s/;
    const answer = new HttpClient().request(await requestTo('https://langfuse.test'), { deadline: Date.now() + 200 });
    await expect(answer).rejects.toThrow(failure);
    const project = fetchProject(langfuseAt('https://langfuse.test'), { deadline: Date.now() + 200 });
    await expect(project).rejects.toThrow(failure);
  }));

test.each([
  [
    'stops in the middle',
    'Content-Length: 9\r\n\r\nabc',
    300,
    /^127\.0\.0\.1:\d+ cannot be reached: no answer within 0\.3 s$/,
  ],
  ['breaks off', 'Content-Length: 9\r\n\r\nabc!', 10_000, /^127\.0\.0\.1:\d+ cannot be reached: ECONNRESET$/],
])('a response whose body %s is a failure, unless the body is optional', async (_, rest, ms, failure) => {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {});
    socket.write(`HTTP/1.1 200 OK\r\n${rest.replace('!', '')}`, () => rest.endsWith('!') && socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const client = new HttpClient();
  const request = { method: 'GET', url: new URL(`http://127.0.0.1:${port}`) } as const;
  stopClock();
  await expect(client.request(request, { deadline: Date.now() + ms })).rejects.toThrow(failure);
  const soon = { deadline: Date.now() + 10_000 };
  expect(await client.request({ ...request, isBodyOptional: true }, soon)).toMatchObject({ status: 200, body: '' });
  await client.close();
  server.close();
});
