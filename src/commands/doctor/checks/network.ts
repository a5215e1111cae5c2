import { accessSync, constants } from 'node:fs';
import { explainNoSystemAuthorities } from '../../../langfuse/http/certificates.lazy.js';
import type { NoResponseError } from '../../../langfuse/http/client.js';
import { findProxy, findProxyProblem } from '../../../langfuse/http/proxy.lazy.js';
import { findTarget } from '../../../langfuse/open-destination.js';
import type { Target } from '../../../langfuse/target.js';
import { about, type Finding } from '../finding.js';
import { showUrl } from '../masking.js';
import type { SettingsInForce } from './settings.js';

const VARIABLES =
  /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|CLAUDE_CODE_CERT_STORE|NODE_TLS_REJECT_UNAUTHORIZED)$/i;

/** The proxy to a server, without its credentials, which may contain spaces; empty if there is none. */
function findShownProxy(url: URL): string {
  return findProxy(url).replace(/(?<=:\/\/).*@/s, '…@');
}

export function checkProxy({ trusted: { destination } }: SettingsInForce): Finding {
  const url = destination && findTarget(destination).url;
  const problem = url && findProxyProblem(url);
  if (problem !== undefined)
    return about('proxy').broken(
      problem,
      'set HTTPS_PROXY or HTTP_PROXY to an http or https proxy, or add the server to NO_PROXY',
    );
  const proxy = url ? findShownProxy(url) : '';
  return proxy === '' ? about('proxy').none('not used') : about('proxy', { proxy }).ok(proxy);
}

export function checkCertificates({ hookEnv }: SettingsInForce): Finding {
  const path = hookEnv.NODE_EXTRA_CA_CERTS;
  const reason = explainNoSystemAuthorities();
  const usual = reason === undefined ? "Node's own and the system's" : `only Node's own, ${reason}`;
  if (!path) return about('certificates').none(usual);
  const certificates = about('certificates', { path });
  const message = `NODE_EXTRA_CA_CERTS is ${path}`;
  try {
    accessSync(path, constants.R_OK);
    return certificates.ok(message);
  } catch {
    return certificates.broken(`${message}, which cannot be read`, 'set it to a file that can be read, or remove it');
  }
}

/** Hooks get variables from Claude Code's settings that this process does not have, or has with another value. */
export function* checkNetworkVariables({ hookEnv, shell }: SettingsInForce): Generator<Finding> {
  for (const variable of Object.keys(hookEnv).filter((name) => VARIABLES.test(name))) {
    if (hookEnv[variable] !== (shell[variable] ?? ''))
      yield about('network', { variable }).warning(
        `${variable} in the settings differs from the shell: hooks use the settings, commands that you run yourself the shell`,
        `set it in the shell, too: export ${variable}=…`,
      );
  }
}

/** Says why there was no answer and how to fix it, by the error codes of Node, the system and OpenSSL. */
export function explainNoAnswer({ code, reason }: NoResponseError, target: Target): Finding {
  const url = showUrl(target.url);
  const { url: variable } = target.settings;
  const proxy = findShownProxy(target.url);
  const to = proxy === '' ? url : `${url} (through the proxy ${proxy})`;
  const fix =
    proxy === '' ? `fix ${variable}` : `fix ${variable}, HTTPS_PROXY or HTTP_PROXY, or add the server to NO_PROXY`;
  const causes: [codes: RegExp, problem: string, fix: string][] = [
    [/^(?:ENOTFOUND|EAI_AGAIN)$/, `the host name of ${to} cannot be resolved`, fix],
    [/^ECONNREFUSED$/, `nothing listens at ${to}`, `start the server, or ${fix}`],
    [
      /SELF_SIGNED_CERT|^UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)/,
      `the certificate of ${to} is signed by an authority that Node does not trust`,
      'export NODE_EXTRA_CA_CERTS=<its .pem file>, and set the same in the env block of your settings',
    ],
    [/^CERT_HAS_EXPIRED$/, `the certificate of ${to} has expired`, 'renew it on the server'],
    [/^CERT_NOT_YET_VALID$/, `the certificate of ${to} is not valid yet`, "set this machine's clock: date"],
    [/^ERR_TLS_CERT_ALTNAME_INVALID$/, `the certificate of ${to} is for another name`, fix],
    [
      /^(?:EPROTO|ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG)$/,
      `${to} cannot be reached by TLS`,
      `use http:// in ${variable}, or make the server use https`,
    ],
    [/^HPE_/, `${to} does not speak HTTP`, fix],
  ];
  const endpoint = about('endpoint', { url, code });
  if (findProxyProblem(target.url) !== undefined)
    return endpoint.none(`${url} was not asked, because the proxy cannot be used`);
  if (code === 'ERR_INVALID_URL')
    return endpoint.broken('the proxy in the environment is not a URL', 'fix HTTPS_PROXY or HTTP_PROXY');
  for (const [codes, problem, cure] of causes)
    if (codes.test(code ?? '')) return endpoint.broken(`${problem} (${code})`, cure);
  const probe = target.langfuse ? `${url}/api/public/health` : url;
  return endpoint.broken(`the request to ${to} failed: ${reason}`, `see where it fails: curl -v ${probe}`);
}
