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
  const { proxyAgentFor } = hasProxy ? await import('./proxy.js') : { proxyAgentFor: () => undefined };
  return { request, agent: proxyAgentFor(url) ?? new Agent({ keepAlive: true }) };
}
