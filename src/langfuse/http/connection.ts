import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { version } from '../../shared/version.js';

/** How requests to a server are made: over kept connections, through the proxy that the environment names. */
export interface Connection {
  readonly request: typeof import('node:http').request;
  readonly agent: import('node:http').Agent;
}

// A process cannot end while the C library asks for an address; left to itself it asks a silent resolver for 20 s.
const RESOLVER_OPTIONS = 'timeout:1 attempts:2';

export async function connect(url: URL): Promise<Connection> {
  process.env.RES_OPTIONS ??= RESOLVER_OPTIONS;
  const { request, Agent } = url.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const hasProxy = Object.keys(process.env).some((name) => /^(?:https?|all)_proxy$/i.test(name));
  const { proxyAgentFor } = hasProxy ? await import('./proxy.lazy.js') : { proxyAgentFor: () => undefined };
  return { request, agent: proxyAgentFor(url) ?? new Agent({ keepAlive: true }) };
}

interface Question {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH';
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Uint8Array;
}

/** The head of the server's answer; throws where none came in time. A redirect is an answer, it is not followed. */
export function ask(
  { request, agent }: Connection,
  url: URL,
  { method, headers, body }: Question,
  timeoutMs: number,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const options = { agent, method, headers: { ...headers, 'user-agent': `cc-langfuse/${version}` } };
    const outgoing = request(url, options, (incoming) => {
      clearTimeout(timer);
      // With its head the answer is there; whoever wants its body hears of it there.
      incoming.on('error', () => {});
      resolve(incoming);
    });
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(error);
    };
    const timer = setTimeout(() => {
      const error = late(timeoutMs);
      outgoing.destroy(error);
      // Without a connection yet (a proxy that is silent) the request tells nobody that it was destroyed.
      fail(error);
    }, timeoutMs);
    outgoing.on('error', fail);
    outgoing.on('close', () => fail(new Error('the connection was closed')));
    outgoing.end(body);
  });
}

/** Whether an answer is a page for people: whatever gave it, it was not meant for us. */
export function isPage({ headers }: IncomingMessage): boolean {
  return /\bhtml\b/i.test(headers['content-type'] ?? '');
}

/** No answer that is meant for us is longer. */
const LONGEST_BODY_CHARS = 5_000_000;

/** The body behind an answer's head; throws where it does not come whole in time. */
export async function bodyOf(incoming: IncomingMessage, timeoutMs: number): Promise<string> {
  const timer = setTimeout(() => incoming.destroy(late(timeoutMs)), timeoutMs);
  try {
    let body = '';
    for await (const chunk of incoming.setEncoding('utf8')) {
      body += chunk;
      if (body.length > LONGEST_BODY_CHARS) throw new Error('its answer does not end');
    }
    return body;
  } finally {
    clearTimeout(timer);
  }
}

export function late(timeoutMs: number): Error {
  return new Error(`no answer within ${timeoutMs} ms`);
}
