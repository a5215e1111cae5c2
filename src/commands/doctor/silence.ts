import type { Silence } from './facts/server.js';

/** What it means that a server gave no answer, and what mends it. */
export interface Explanation {
  readonly what: string;
  readonly fix: string;
}

/** What was asked. */
export interface Asked {
  readonly url: string;
  /** The setting that names it. */
  readonly variable: string;
  /** What lay between, without credentials; empty where nothing did. */
  readonly proxy: string;
  /** What anyone may ask it for. */
  readonly probe: string;
}

/** By the words of Node, the system and OpenSSL. */
export function explained({ code, message }: Silence, asked: Asked): Explanation {
  const { url, variable, proxy, probe } = asked;
  const to = proxy === '' ? url : `${url} (through the proxy ${proxy})`;
  switch (code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return { what: `the name of ${to} is not found (${code})`, fix: checkAddress(asked) };
    case 'ECONNREFUSED':
      return { what: `nothing listens at ${to} (${code})`, fix: `start the server, or ${checkAddress(asked)}` };
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
      return {
        what: `the certificate of ${to} is of an authority that Node does not know (${code})`,
        fix: 'export NODE_EXTRA_CA_CERTS=<its .pem file>, and the same in the env block of your settings',
      };
    case 'CERT_HAS_EXPIRED':
      return { what: `the certificate of ${to} has expired (${code})`, fix: 'have it renewed there' };
    case 'CERT_NOT_YET_VALID':
      return { what: `the certificate of ${to} is not valid yet (${code})`, fix: "set this machine's clock: date" };
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return { what: `the certificate of ${to} is for another name (${code})`, fix: checkAddress(asked) };
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return {
        what: `${to} speaks no TLS (${code})`,
        fix: `write http:// in ${variable}, or have it serve https`,
      };
    case 'ERR_INVALID_URL':
      return { what: 'the proxy that the environment names is no URL', fix: 'mend HTTPS_PROXY or HTTP_PROXY' };
    default:
      return code?.startsWith('HPE_')
        ? { what: `${to} speaks no HTTP (${code})`, fix: checkAddress(asked) }
        : { what: `${to} is silent: ${code ?? message}`, fix: `see what is between: curl -v ${probe}` };
  }
}

function checkAddress({ variable, proxy }: Asked): string {
  return proxy === ''
    ? `mend ${variable}`
    : `mend ${variable}, HTTPS_PROXY or HTTP_PROXY, or name the server in NO_PROXY`;
}
