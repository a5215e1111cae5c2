import type { Agent } from 'node:http';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import { getProxyForUrl } from 'proxy-from-env';

/** The way through HTTPS_PROXY or HTTP_PROXY, unless NO_PROXY names the host. */
export function proxyAgentFor(url: URL): Agent | undefined {
  const proxy = getProxyForUrl(url.href);
  if (proxy === '') return undefined;
  return url.protocol === 'https:'
    ? new HttpsProxyAgent(proxy, { keepAlive: true })
    : new HttpProxyAgent(proxy, { keepAlive: true });
}
