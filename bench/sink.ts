import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server that accepts everything without looking at it, so that it hardly slows down what is measured. */
export interface Sink {
  readonly url: string;
  /** Returns the body of the last request. */
  readonly lastBody: () => Buffer;
  /** Returns how many bytes have arrived in all. */
  readonly bytes: () => number;
  /** Resolves with the time at which the next request begins. */
  readonly nextRequest: () => Promise<number>;
  readonly stop: () => void;
}

export async function startSink(): Promise<Sink> {
  let lastBody = Buffer.alloc(0);
  let bytes = 0;
  let onRequest: (at: number) => void = () => {};
  const server = createServer((request, response) => {
    onRequest(performance.now());
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      lastBody = Buffer.concat(chunks);
      bytes += lastBody.length;
      response.setHeader('content-type', 'application/json');
      response.end(request.method === 'GET' ? '{"data":[{"id":"bench"}]}' : '{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    lastBody: () => lastBody,
    bytes: () => bytes,
    nextRequest: () =>
      new Promise((resolve) => {
        onRequest = resolve;
      }),
    stop: () => server.close(),
  };
}
