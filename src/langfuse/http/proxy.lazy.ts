import type { Agent } from 'node:http';
import type { AgentOptions } from 'node:https';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

/**
 * The proxy that HTTPS_PROXY or HTTP_PROXY names, or else ALL_PROXY, unless NO_PROXY names the host; empty if there is none.
 */
export function findProxy(url: URL): string {
  return getProxyForUrl(url.href);
}

/** Says why the proxy to a URL cannot be used; undefined if it can be, or if there is none. */
export function findProxyProblem(url: URL): string | undefined {
  const proxy = findProxy(url);
  const { protocol } = URL.canParse(proxy) ? new URL(proxy) : { protocol: 'http:' };
  if (/^https?:$/.test(protocol)) return undefined;
  // The order in which `getProxyForUrl` looks for them.
  const names = [`${url.protocol.slice(0, -1)}_proxy`, 'all_proxy'].flatMap((name) => [name, name.toUpperCase()]);
  const variable = names.find((name) => process.env[name]);
  return `${variable} names a ${protocol.slice(0, -1)} proxy, but only http and https proxies are supported`;
}

/** Throws if the proxy cannot be used: a direct connection would go around a proxy that the user wanted. */
export function createProxyAgent(url: URL, options: AgentOptions): Agent | undefined {
  const problem = findProxyProblem(url);
  if (problem !== undefined) throw new Error(problem);
  const proxy = findProxy(url);
  if (proxy === '') return undefined;
  return url.protocol === 'https:' ? new HttpsProxyAgent(proxy, options) : new HttpProxyAgent(proxy, options);
}
