import * as tls from 'node:tls';

interface NewerTls {
  /** Since Node 22.15. */
  getCACertificates?(store: 'default' | 'extra' | 'system'): string[];
}

/**
 * Returns the authorities that Claude Code trusts, the system's among them; undefined if the user does not want those, or if this
 * version of Node cannot read them. Reading them takes long on some systems.
 */
export function readAuthorities(): string[] | undefined {
  const { getCACertificates } = tls as NewerTls;
  const stores = listStores();
  if (!getCACertificates || !stores.includes('system')) return undefined;
  return [...getCACertificates(stores.includes('bundled') ? 'default' : 'extra'), ...getCACertificates('system')];
}

/** Says why the system's authorities do not count; undefined if they do. */
export function explainNoSystemAuthorities(): string | undefined {
  if (!listStores().includes('system')) return 'as CLAUDE_CODE_CERT_STORE says';
  return (tls as NewerTls).getCACertificates
    ? undefined
    : `because Node ${process.versions.node} cannot read the system's; 22.15 and newer can`;
}

/** Claude Code's variable for the same. It trusts both unless the user chooses. */
function listStores(): string[] {
  const chosen = (process.env.CLAUDE_CODE_CERT_STORE ?? '').split(',').map((store) => store.trim());
  return chosen.some(Boolean) ? chosen : ['bundled', 'system'];
}
