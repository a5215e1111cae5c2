import type { Reply } from '../../../langfuse/transport.js';
import type { Answer, ServerFacts } from '../facts/server.js';
import { broken, type Finding, none, ok } from '../finding.js';

/** The first version of Langfuse whose ingestion API takes no traces. */
const CLOSED_FROM = 4;
const UNSET = 'take CC_LANGFUSE_TRANSPORT out';
const ASK = 'ask who runs the server, or what lies before it';

/** By which way it takes what it is sent. */
export function checkDoors(facts: ServerFacts): Finding[] {
  const { langfuse, health, otlp } = facts;
  const { version } = health.kind === 'answer' ? health.answer : {};
  const isClosed = Number.parseInt(version ?? '', 10) >= CLOSED_FROM;
  if (langfuse.transport === 'ingestion') {
    const closed = `Langfuse ${version} takes no traces by its ingestion API, which CC_LANGFUSE_TRANSPORT names`;
    const fix = `${UNSET}, so that they go by OpenTelemetry`;
    return [isClosed ? broken('ingestion', closed, fix, { version }) : checkDoor('ingestion', facts)];
  }
  if (otlp.kind === 'none' || otlp.answer.status !== 404) return [checkDoor('otlp', facts)];
  const details = { status: 404, version };
  if (isClosed) return [broken('otlp', `no OpenTelemetry endpoint (404), which Langfuse ${version} has`, ASK, details)];
  const isOlder = 'no OpenTelemetry endpoint (404), as Langfuse before 3.22';
  if (langfuse.transport === 'otlp')
    return [broken('otlp', isOlder, `${UNSET}, so that its ingestion API is used; or update it`, details)];
  return [none('otlp', `${isOlder}: its ingestion API is used`, details), checkDoor('ingestion', facts)];
}

const DOORS = {
  otlp: { name: 'its OpenTelemetry endpoint', taking: 'takes OpenTelemetry' },
  ingestion: { name: 'its ingestion API', taking: 'takes events' },
} as const;

function checkDoor(door: keyof typeof DOORS, facts: ServerFacts): Finding {
  const { name, taking } = DOORS[door];
  const { [door]: asked, project } = facts;
  if (asked.kind === 'none') {
    const fix = 'run it once more; if it stays, ask who runs the server';
    return broken(door, `${name} does not answer: ${asked.code ?? asked.message}`, fix, { code: asked.code });
  }
  const { status, problem } = asked.answer;
  const isRefused = status === 401 || status === 403;
  if (isRefused && project.kind === 'answer' && project.answer.status === status)
    return none(door, 'there; whether it takes anything is known once the keys are right', { status });
  return isTaken(asked)
    ? ok(door, `${taking} (${status})`, { status })
    : broken(door, problem ?? `${name} answers ${status}`, ASK, { status });
}

export function isTaken(asked: Answer<Reply>): boolean {
  if (asked.kind === 'none') return false;
  const { status, problem } = asked.answer;
  return problem === undefined && status >= 200 && status < 300;
}
