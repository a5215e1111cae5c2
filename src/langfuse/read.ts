import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { ask, connect, late } from './connection.js';

/** What is asked for is short; a server could go on for ever. */
const LONGEST_CHARS = 1_000_000;

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
    const timer = setTimeout(() => incoming.destroy(late(timeoutMs)), deadline - Date.now());
    const body = await textOf(incoming).finally(() => clearTimeout(timer));
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body };
  } finally {
    connection.agent.destroy();
  }
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) {
    text += chunk;
    if (text.length > LONGEST_CHARS) throw new Error('its answer does not end');
  }
  return text;
}
