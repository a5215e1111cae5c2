import { formatDuration } from '../../../cli/format.js';
import type { NetworkFacts, ServerFacts } from '../facts/server.js';
import { broken, type Finding, none, ok, warning } from '../finding.js';
import { shownUrl, withoutCredentials } from '../masking.js';
import { explained } from '../silence.js';
import { checkDoors } from './doors.js';

const CLOCK_TOLERANCE_MS = 60_000;

export function checkServer(facts: ServerFacts, network: NetworkFacts): Finding[] {
  const url = shownUrl(facts.langfuse.baseUrl);
  const endpoint = checkEndpoint(facts, url, withoutCredentials(network.proxy));
  // What is no Langfuse knows nothing of keys.
  if (endpoint.status === 'broken') return [endpoint];
  return [endpoint, checkKeys(facts, url), ...checkDoors(facts), checkClock(facts)];
}

function checkEndpoint({ health }: ServerFacts, url: string, proxy: string): Finding {
  if (health.kind === 'none') {
    const asked = { url, variable: 'LANGFUSE_BASE_URL', proxy, probe: `${url}/api/public/health` };
    const { what, fix } = explained(health, asked);
    return broken('endpoint', what, fix, { url, code: health.code });
  }
  const { status, version, location } = health.answer;
  const details = { url, status, version };
  if (version !== undefined && status < 300) return ok('endpoint', `${url} is Langfuse ${version}`, details);
  if (status >= 300 && status < 400) {
    const target = baseOf(location, url);
    return broken(
      'endpoint',
      `${url} sends elsewhere (${status}), which is not followed`,
      target === undefined ? 'write its own address to LANGFUSE_BASE_URL' : `write "LANGFUSE_BASE_URL": "${target}"`,
      details,
    );
  }
  if (status >= 500) return broken('endpoint', `${url} is ill (${status})`, 'wait, or ask who runs it', details);
  return broken(
    'endpoint',
    `what answers at ${url} is no Langfuse (${status})`,
    'write to LANGFUSE_BASE_URL the address that its page has in a browser, up to the first /project',
    details,
  );
}

function baseOf(location: string | undefined, url: string): string | undefined {
  if (location === undefined || !URL.canParse(location, url)) return undefined;
  const { origin, pathname } = new URL(location, url);
  if (!pathname.endsWith('/api/public/health')) return undefined;
  const base = `${origin}${pathname.slice(0, -'/api/public/health'.length)}`;
  return base === url ? undefined : base;
}

function checkKeys({ project: asked }: ServerFacts, url: string): Finding {
  if (asked.kind === 'none') {
    const fix = 'run it once more; if it stays, ask who runs the server';
    return broken('keys', `not answered about the keys: ${asked.code ?? asked.message}`, fix, { code: asked.code });
  }
  const { status, project } = asked.answer;
  if (status === 401 || status === 403)
    return broken(
      'keys',
      `the server refuses the keys (${status})`,
      `make new ones at ${url} (project settings, API keys) and: cc-langfuse install`,
      { status },
    );
  if (!project)
    return warning('keys', `the server does not tell the project (${status})`, `look whether it is there: ${url}`, {
      status,
    });
  return ok('keys', `they open the project "${project.name}"`, { project: project.name, projectId: project.id });
}

function checkClock({ clockAheadMs }: ServerFacts): Finding {
  if (clockAheadMs === undefined) return none('clock', 'the server does not tell its time');
  const details = { aheadMs: clockAheadMs };
  const difference = formatDuration(Math.abs(clockAheadMs));
  if (Math.abs(clockAheadMs) < CLOCK_TOLERANCE_MS) return ok('clock', `as the server's, to ${difference}`, details);
  const message = `${difference} ${clockAheadMs > 0 ? 'behind' : 'ahead of'} the server's: turns stand at times when nobody looks`;
  return warning('clock', message, 'timedatectl set-ntp true (or the time settings of the system)', details);
}

export function checkNetwork({ proxy, onlyForHooks, certificates }: NetworkFacts): Finding[] {
  return [
    proxy === ''
      ? none('proxy', 'none is used')
      : ok('proxy', withoutCredentials(proxy), { proxy: withoutCredentials(proxy) }),
    checkCertificates(certificates),
    ...onlyForHooks.map((variable) =>
      warning(
        'network',
        `${variable} is not in the shell as it is in the settings, which hooks have and commands by hand have not`,
        `set it in the shell, too: export ${variable}=…`,
        { variable },
      ),
    ),
  ];
}

function checkCertificates(certificates: NetworkFacts['certificates']): Finding {
  if (!certificates) return none('certificates', 'those that Node knows');
  const { path, isReadable } = certificates;
  const message = `NODE_EXTRA_CA_CERTS is ${path}`;
  if (isReadable) return ok('certificates', message, { path });
  return broken('certificates', `${message}, which cannot be read`, 'write the path of a file that can, or remove it', {
    path,
  });
}
