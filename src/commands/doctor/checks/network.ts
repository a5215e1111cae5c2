import { accessSync, constants } from 'node:fs';
import type { DestinationConfig } from '../../../config/settings.js';
import { otlpEndpoint } from '../../../langfuse/endpoint.js';
import { findProxy } from '../../../langfuse/http/proxy.lazy.js';
import { about, type Finding } from '../finding.js';
import { showProxy } from '../masking.js';
import type { SettingsInForce } from './settings.js';

const VARIABLES = /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED)$/i;

/** The proxy to a destination, without credentials; empty if there is none. */
export function findShownProxy(destination: DestinationConfig | undefined): string {
  return destination ? showProxy(findProxy(otlpEndpoint(destination).url)) : '';
}

export function checkProxy({ trusted }: SettingsInForce): Finding {
  const proxy = findShownProxy(trusted.destination);
  return proxy === '' ? about('proxy').none('not used') : about('proxy', { proxy }).ok(proxy);
}

export function checkCertificates({ hookEnv }: SettingsInForce): Finding {
  const path = hookEnv.NODE_EXTRA_CA_CERTS;
  if (!path) return about('certificates').none("only Node's own");
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
export function checkNetworkVariables({ hookEnv, shell }: SettingsInForce): Finding[] {
  return Object.keys(hookEnv)
    .filter((variable) => VARIABLES.test(variable) && hookEnv[variable] !== (shell[variable] ?? ''))
    .map((variable) =>
      about('network', { variable }).warning(
        `${variable} in the settings, which hooks use, differs from the shell, which commands that you run yourself use`,
        `set it in the shell, too: export ${variable}=…`,
      ),
    );
}
