/**
 * A remote's URL as `host/owner/name`: without credentials, which some keep in it, and the same however it is reached.
 * Undefined where it names no host: a path says nothing to others.
 */
export function repositoryName(url: string): string | undefined {
  const { host, path } = url.includes('://') ? partsOfUrl(url) : partsOfShort(url);
  const name = path
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .replace(/^\/+/, '');
  return host && name ? `${host.toLowerCase()}/${name}` : undefined;
}

const NO_PARTS = { host: '', path: '' };

function partsOfUrl(url: string) {
  if (!URL.canParse(url)) return NO_PARTS;
  const { hostname, pathname } = new URL(url);
  return { host: hostname, path: pathname };
}

/** `git@host:owner/name`; a single letter is a drive of Windows. */
function partsOfShort(url: string) {
  const [, host = '', path = ''] = /^(?:[^/@]*@)?([\w.-]{2,}):(.+)$/.exec(url) ?? [];
  return { host, path };
}
