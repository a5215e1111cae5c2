import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server that takes everything and looks at nothing, so that it takes no time from what is measured. */
export interface Sink {
  readonly url: string;
  /** What it was sent last, and how much in all. */
  readonly last: () => Buffer;
  readonly bytes: () => number;
  /** Resolves at the next request's first byte, with the time. */
  readonly next: () => Promise<number>;
  readonly stop: () => void;
}

export async function startSink(): Promise<Sink> {
  let last = Buffer.alloc(0);
  let bytes = 0;
  let told: (at: number) => void = () => {};
  const server = createServer((request, response) => {
    told(performance.now());
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      last = Buffer.concat(chunks);
      bytes += last.length;
      response.setHeader('content-type', 'application/json');
      response.end(request.method === 'GET' ? '{"data":[{"id":"bench"}]}' : '{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    last: () => last,
    bytes: () => bytes,
    next: () =>
      new Promise((resolve) => {
        told = resolve;
      }),
    stop: () => server.close(),
  };
}
