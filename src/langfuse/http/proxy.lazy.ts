import type { Agent } from 'node:http';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

/** The proxy that HTTPS_PROXY or HTTP_PROXY names, unless NO_PROXY names the host; empty where there is none. */
export function proxyFor(url: URL): string {
  return getProxyForUrl(url.href);
}

/** The way through it. */
export function proxyAgentFor(url: URL): Agent | undefined {
  const proxy = proxyFor(url);
  if (proxy === '') return undefined;
  return url.protocol === 'https:'
    ? new HttpsProxyAgent(proxy, { keepAlive: true })
    : new HttpProxyAgent(proxy, { keepAlive: true });
}
