import { formatDuration } from '../../../cli/format.js';
import { ownCommand } from '../../../cli/own-command.js';
import type { LangfuseConfig } from '../../../config/settings.js';
import { CORRECT_URL, resolveSecretKey } from '../../../langfuse/endpoint.js';
import { type Http, isRefusal, type NoResponseError, requestOnce } from '../../../langfuse/http/client.js';
import { postEvents } from '../../../langfuse/ingestion/ingestion-transport.lazy.js';
import { findTarget } from '../../../langfuse/open-destination.js';
import {
  describeOnlyReading,
  fetchHealth,
  fetchProject,
  type HealthAnswer,
  INGESTION_ONLY,
  type ProjectAnswer,
} from '../../../langfuse/server.js';
import type { Target } from '../../../langfuse/target.js';
import { isAccepted, type Reply } from '../../../langfuse/transport.js';
import { quote } from '../../../langfuse/words.js';
import { about, type Finding } from '../finding.js';
import { showUrl } from '../masking.js';
import { checkCertificates, checkNetworkVariables, checkProxy, explainNoAnswer } from './network.js';
import type { SettingsInForce } from './settings.js';

const TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 20_000;
const ONCE: Http = { request: requestOnce };
const CLOCK_TOLERANCE_MS = 60_000;
/** The first major version of Langfuse whose ingestion API accepts no traces. */
const INGESTION_CLOSED_FROM = 4;
const ASK_OPERATOR = 'ask whoever runs the server or the proxy in front of it';
const RUN_COMMAND = 'run the command yourself: it has to print the secret key, nothing else, and end with exit code 0';
const RUN_AGAIN = `run ${ownCommand()} doctor again; if nothing has changed, ask the server's administrator`;

export const SERVER_CHECKS = [checkServer, checkProxy, checkCertificates, checkNetworkVariables];

type Answer<T> = T | NoResponseError;

async function checkServer({ settings, trusted, plugin }: SettingsInForce): Promise<Finding[]> {
  const target = trusted.destination && findTarget(trusted.destination);
  if (target) return target.langfuse ? checkLangfuse(target.langfuse, target) : [await checkOther(target)];
  const notAsked = (reason: string) => [about('endpoint').none(`not asked: ${reason}`)];
  if (settings.destination)
    return notAsked("its address or its keys come from a project's settings; set them in the shell to try them");
  if (plugin === undefined) return notAsked('the keys or the URL are missing');
  return notAsked('Claude Code keeps the secret key to itself; set the keys in the shell to try them');
}

/** Asks four questions at once. None of them makes the server store anything. */
async function checkLangfuse(langfuse: LangfuseConfig, target: Target): Promise<Finding[]> {
  // The user's command may take longer than a question.
  const keyProblem = await resolveSecretKey(langfuse, { deadline: Date.now() + COMMAND_TIMEOUT_MS }).then(
    () => undefined,
    (error: Error) => error.message,
  );
  if (keyProblem !== undefined) return [about('keys').broken(keyProblem, RUN_COMMAND)];
  const limits = { deadline: Date.now() + TIMEOUT_MS };
  const [health, project, otlp, ingestion] = await Promise.all([
    orError(fetchHealth(langfuse, limits).then((answer) => ({ ...answer, at: Date.now() }))),
    orError(fetchProject(langfuse, limits)),
    orError(target.probe(ONCE, limits)),
    orError(postEvents([], langfuse, ONCE, limits)),
  ]);
  if (health instanceof Error) return [explainNoAnswer(health, target)];
  const url = showUrl(langfuse.baseUrl);
  const endpoint = checkEndpoint(url, health);
  // The answers to the other questions would not be Langfuse's.
  if (endpoint.status === 'broken') return [endpoint];
  const transports = checkTransports(langfuse.transport, health.version, { otlp, ingestion, project });
  return [endpoint, checkKeys(url, project, otlp), ...transports, checkClock(health)];
}

function orError<T>(asked: Promise<T>): Promise<Answer<T>> {
  return asked.catch((error: NoResponseError) => error);
}

function checkEndpoint(url: string, { status, version, location }: HealthAnswer): Finding {
  const endpoint = about('endpoint', { url, status, version });
  if (version !== undefined && status < 300) return endpoint.ok(`${url} is Langfuse ${version}`);
  if (status >= 300 && status < 400) {
    const message = `${url} redirects (${status}), and redirects are not followed`;
    const target = findRedirectTarget(location, url);
    if (target !== undefined) return endpoint.broken(message, `set "LANGFUSE_BASE_URL": "${target}"`);
    return endpoint.broken(message, 'set LANGFUSE_BASE_URL to the address that it redirects to');
  }
  if (status >= 500) return endpoint.broken(`${url} returns errors (${status})`, 'wait, or ask whoever runs it');
  return endpoint.broken(`${url} is not Langfuse (${status})`, CORRECT_URL);
}

function findRedirectTarget(location: string | undefined, url: string): string | undefined {
  if (location === undefined || !URL.canParse(location, url)) return undefined;
  const { origin, pathname } = new URL(location, url);
  const [, target] = /^(.*)\/api\/public\/health$/.exec(origin + pathname) ?? [];
  return target === url ? undefined : target;
}

function checkKeys(url: string, answer: Answer<ProjectAnswer>, otlp: Answer<Reply>): Finding {
  if (answer instanceof Error) {
    const keys = about('keys', { code: answer.code });
    return keys.broken(`the server could not check the keys: ${answer.reason}`, RUN_AGAIN, answer.code);
  }
  const { status, project } = answer;
  const write = otlp instanceof Error ? undefined : otlp;
  const keys = about('keys', project ? { project: project.name, projectId: project.id } : { status });
  const place = `at ${url} (project settings, API keys), then run: ${ownCommand()} install`;
  const kind = 'with full access, or for ingestion,';
  if (isRefusal(status) && write && isAccepted(write)) return keys.ok(`${INGESTION_ONLY} (${status})`);
  if (isRefusal(status)) {
    const { status: refused, words } = write && isRefusal(write.status) ? write : answer;
    const fix = `create new ones ${refused === 401 ? '' : `${kind} `}${place}`;
    return keys.broken(`the server refuses the keys (${refused})${quote(words)}`, fix);
  }
  if (project && write && isRefusal(write.status))
    return keys.broken(describeOnlyReading(project, write), `create keys ${kind} ${place}`);
  if (project) return keys.ok(`for the project "${project.name}"`);
  return keys.warning(`the server does not name the keys' project (${status})`, `check that it exists: ${url}`);
}

const APIS = {
  otlp: { name: 'the OpenTelemetry endpoint', accepts: 'accepts OpenTelemetry' },
  ingestion: { name: 'the ingestion API', accepts: 'accepts events' },
} as const;
type Api = keyof typeof APIS;
type ApiAnswers = { readonly [api in Api]: Answer<Reply> } & { readonly project: Answer<ProjectAnswer> };

function* checkTransports(transport: LangfuseConfig['transport'], version: string | undefined, answers: ApiAnswers) {
  const isIngestionClosed = Number.parseInt(version ?? '', 10) >= INGESTION_CLOSED_FROM;
  const { otlp } = answers;
  const isOtlpMissing = !(otlp instanceof Error) && otlp.status === 404;
  const missing = about('otlp', { status: 404, version });
  const message = 'no OpenTelemetry endpoint (404); Langfuse has one from 3.22 on';
  if (transport === 'ingestion' && isIngestionClosed)
    yield about('ingestion', { version }).broken(
      `CC_LANGFUSE_TRANSPORT selects the ingestion API, which accepts no traces in Langfuse ${version}`,
      'remove CC_LANGFUSE_TRANSPORT to send by OpenTelemetry',
    );
  else if (transport === 'ingestion') yield checkApi('ingestion', answers);
  else if (!isOtlpMissing) yield checkApi('otlp', answers);
  else if (isIngestionClosed)
    yield missing.broken(`no OpenTelemetry endpoint (404), although Langfuse ${version} has one`, ASK_OPERATOR);
  else if (transport === 'otlp')
    yield missing.broken(message, 'remove CC_LANGFUSE_TRANSPORT to use the ingestion API, or update Langfuse');
  else {
    yield missing.none(`${message}, so the ingestion API is used`);
    yield checkApi('ingestion', answers);
  }
}

function checkApi(api: Api, answers: ApiAnswers): Finding {
  const { name, accepts } = APIS[api];
  const { [api]: answer, project } = answers;
  if (answer instanceof Error)
    return about(api, { code: answer.code }).broken(
      `${name} does not answer: ${answer.reason}`,
      RUN_AGAIN,
      answer.code,
    );
  const { status, problem } = answer;
  const finding = about(api, { status });
  if (isRefusal(status) && !(project instanceof Error))
    return finding.none(`${name} answers; fix the keys to find out whether it accepts data`);
  if (isAccepted(answer)) return finding.ok(`${accepts} (${status})`);
  return finding.broken(problem ?? `${name} answers ${status}`, ASK_OPERATOR);
}

function checkClock({ clock, at }: HealthAnswer & { readonly at: number }): Finding {
  if (clock === undefined) return about('clock').none('the server does not send its time');
  const aheadMs = clock - at;
  const finding = about('clock', { aheadMs });
  const difference = formatDuration(Math.abs(aheadMs));
  if (Math.abs(aheadMs) < CLOCK_TOLERANCE_MS) return finding.ok(`differs from the server's by ${difference}`);
  return finding.warning(
    `${difference} ${aheadMs > 0 ? 'behind' : 'ahead of'} the server's, so turns appear at the wrong time`,
    'timedatectl set-ntp true (or the time settings of the system)',
  );
}

/** A Collector says nothing about itself but whether it accepts a request. */
async function checkOther(target: Target): Promise<Finding> {
  const { name, settings } = target;
  const url = showUrl(target.url);
  const answer = await orError(target.probe(ONCE, { deadline: Date.now() + TIMEOUT_MS }));
  if (answer instanceof Error) return explainNoAnswer(answer, target);
  const { status, problem = `it answers ${status}` } = answer;
  const endpoint = about('endpoint', { url, status });
  if (isAccepted(answer)) return endpoint.ok(`${name} at ${url} accepts OpenTelemetry (${status})`);
  const message = `${name} at ${url}: ${problem}`;
  if (status >= 500 || status === 429) return endpoint.broken(message, 'wait, or ask whoever runs it');
  return endpoint.broken(message, `fix ${isRefusal(status) ? settings.credentials : settings.url}`);
}
