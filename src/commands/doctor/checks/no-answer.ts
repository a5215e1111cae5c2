import type { NoResponseError } from '../../../langfuse/http/client.js';
import { about, type Finding } from '../finding.js';

/** A request that got no answer. */
export interface Unanswered {
  readonly error: NoResponseError;
  readonly url: string;
  /** The setting that names the URL. */
  readonly variable: string;
  /** The proxy in between, without credentials; empty if there is none. */
  readonly proxy: string;
  /** A URL that answers anyone. */
  readonly probe: string;
}

/** Says why there was no answer and how to fix it, by the error codes of Node, the system and OpenSSL. */
export function explainNoAnswer({ error: { code, reason }, url, variable, proxy, probe }: Unanswered): Finding {
  const { broken } = about('endpoint', { url, code });
  const to = proxy === '' ? url : `${url} (through the proxy ${proxy})`;
  const fix =
    proxy === '' ? `fix ${variable}` : `fix ${variable}, HTTPS_PROXY or HTTP_PROXY, or add the server to NO_PROXY`;
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return broken(`the host name of ${to} cannot be resolved (${code})`, fix);
    case 'ECONNREFUSED':
      return broken(`nothing listens at ${to} (${code})`, `start the server, or ${fix}`);
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return broken(
        `the certificate of ${to} is signed by an authority that Node does not trust (${code})`,
        'export NODE_EXTRA_CA_CERTS=<its .pem file>, and set the same in the env block of your settings',
      );
    case 'CERT_HAS_EXPIRED':
      return broken(`the certificate of ${to} has expired (${code})`, 'renew it on the server');
    case 'CERT_NOT_YET_VALID':
      return broken(`the certificate of ${to} is not valid yet (${code})`, "set this machine's clock: date");
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return broken(`the certificate of ${to} is for another name (${code})`, fix);
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
    case 'EPROTO':
      return broken(
        `${to} cannot be reached by TLS (${code})`,
        `use http:// in ${variable}, or make the server use https`,
      );
    case 'ERR_INVALID_URL':
      return broken('the proxy in the environment is not a URL', 'fix HTTPS_PROXY or HTTP_PROXY');
    default:
      if (code?.startsWith('HPE_')) return broken(`${to} does not speak HTTP (${code})`, fix);
      return broken(`the request to ${to} failed: ${reason}`, `see where it fails: curl -v ${probe}`);
  }
}
