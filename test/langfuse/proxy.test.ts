import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { otlpEndpoint } from '../../src/langfuse/endpoint.js';
import { Post } from '../../src/langfuse/post.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';

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
  const post = new Post(otlpEndpoint({ baseUrl: new URL(url), publicKey: PUBLIC_KEY, secretKey: SECRET_KEY }));
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
