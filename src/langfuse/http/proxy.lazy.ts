import type { Agent } from 'node:http';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

/** The proxy that HTTPS_PROXY or HTTP_PROXY names, unless NO_PROXY names the host; empty if there is none. */
export function findProxy(url: URL): string {
  return getProxyForUrl(url.href);
}

export function createProxyAgent(url: URL): Agent | undefined {
  const proxy = findProxy(url);
  if (proxy === '') return undefined;
  return url.protocol === 'https:'
    ? new HttpsProxyAgent(proxy, { keepAlive: true })
    : new HttpProxyAgent(proxy, { keepAlive: true });
}
