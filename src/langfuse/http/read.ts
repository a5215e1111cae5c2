import type { IncomingHttpHeaders, OutgoingHttpHeaders } from 'node:http';
import { ask, bodyOf, connect } from './connection.js';

interface Document {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** What a server has at an address, over a connection of its own; throws where it is not all there in time. */
export async function read(url: URL, headers: OutgoingHttpHeaders, timeoutMs: number): Promise<Document> {
  const deadline = Date.now() + timeoutMs;
  const connection = await connect(url);
  try {
    const incoming = await ask(connection, url, { method: 'GET', headers }, timeoutMs);
    const body = await bodyOf(incoming, deadline - Date.now());
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body };
  } finally {
    connection.agent.destroy();
  }
}
