import * as z from 'zod/mini';
import { TAG_KINDS, type TagKind } from '../observations/build/tags.js';
import { isTraceNameTemplate, TRACE_NAME_FIELDS } from '../observations/build/trace-name.js';
import { attempt } from '../shared/attempt.js';
import { isRecord, type Json, parseJson } from '../shared/json.js';
import { NO_WHOLE_NUMBER, WHOLE_NUMBER } from '../shared/schema.js';
import { findBadFolder, NO_FOLDER, parseFolderList } from './folder-list.js';

/** Makes a schema of a function that returns undefined for a bad value; `expected` is the message then. */
function format<T>(expected: string, parse: (value: string) => T | undefined) {
  return z.pipe(
    z.string(),
    z.transform((value, { issues }): T => {
      const parsed = parse(value);
      if (parsed !== undefined) return parsed;
      issues.push({ code: 'custom', input: value, message: expected });
      return z.NEVER;
    }),
  );
}

export const text = z.string();

export const matching = (pattern: RegExp, expected: string) =>
  format(expected, (value) => (pattern.test(value) ? value : undefined));

export const wholeNumber = format(NO_WHOLE_NUMBER, (value) => (WHOLE_NUMBER.test(value) ? Number(value) : undefined));

export const oneOf = <const T extends string>(...values: readonly T[]) =>
  format(`expected ${values.slice(0, -1).join(', ')} or ${values.at(-1)}`, (value) =>
    values.find((each) => each === value.toLowerCase()),
  );

export const toggle = z.pipe(
  oneOf('true', 'false'),
  z.transform((value) => value === 'true'),
);

/** For a setting that restricts: a typo restricts, too. */
export const unlessFalse = format('', (value) => !isFalse(value));

export function isFalse(value: string): boolean {
  return value.trim().toLowerCase() === 'false';
}

export const list = format('', splitList);

export const folders = format(`${NO_FOLDER}, comma-separated or as a JSON array; nothing is sent`, (value) =>
  findBadFolder(value) === undefined ? parseFolderList(value) : undefined,
);

export const tagKinds = format(`expected none, or a list of ${TAG_KINDS.join(', ')}`, (value) => {
  const kinds = splitList(value.toLowerCase()).filter((name) => name !== 'none');
  return kinds.every(isTagKind) ? kinds : undefined;
});

export const traceName = format(`expected only the fields ${TRACE_NAME_FIELDS.join(', ')}`, (value) =>
  isTraceNameTemplate(value) ? value : undefined,
);

/** Namespaces of OpenTelemetry: what is in them describes programs and machines, or is of one value for each person. */
const OWN_NAMESPACES =
  /^(?:aws|azure|browser|cloud|container|deployment|device|enduser|faas|gcp|host|k8s|os|process|service|session|telemetry|user|webengine)\./;
/** Langfuse's SDKs leave out longer ones. */
const LONGEST_TAG = 200;
const MOST_RESOURCE_TAGS = 20;

/** Parses `OTEL_RESOURCE_ATTRIBUTES` as OpenTelemetry does: with one bad attribute none counts. */
export const resourceTags = format(
  `expected key=value,key=value with percent-encoded values of at most ${LONGEST_TAG} characters`,
  (value) => {
    const attributes = splitList(value).map((item) => {
      const parts = item.split('=').map((part) => attempt(() => decodeURIComponent(part.trim())) ?? '');
      return parts.length === 2 && parts.every((part) => part !== '') ? parts.join(':') : undefined;
    });
    if (!attributes.every((tag) => tag !== undefined && tag.length <= LONGEST_TAG)) return undefined;
    const tags = attributes.flatMap((tag) => (tag === undefined || OWN_NAMESPACES.test(tag) ? [] : [tag]));
    return tags.slice(0, MOST_RESOURCE_TAGS);
  },
);

export const jsonObject = format('expected a JSON object', (value) => {
  const parsed = parseJson(value);
  return isRecord(parsed) ? (parsed as { [key: string]: Json }) : undefined;
});

/** The ends of Langfuse's attributes `langfuse.experiment.…`. Without the first two, an observation belongs to no item. */
const EXPERIMENT_ATTRIBUTES = [
  'id',
  'item.id',
  'name',
  'dataset.id',
  'item.root_observation_id',
  'item.expected_output',
];

/** Dollars that a turn, or a day, may cost before the terminal says so. */
export interface Budget {
  readonly turn?: number;
  readonly day?: number;
}

/** A number alone is for a day. */
export const budget = format(
  'expected dollars for a turn, a day or both: turn=5 day=50',
  (value): Budget | undefined => {
    const limits = splitList(value.replaceAll(/\s+/g, ',')).map((item) =>
      /^(?:(turn|day)=)?\$?(\d+(?:\.\d+)?)$/.exec(item),
    );
    const entries = limits.map((limit) => [limit?.[1] ?? 'day', Number(limit?.[2])] as const);
    const isValid = entries.length > 0 && entries.every(([, dollars]) => dollars > 0);
    const budget = Object.fromEntries(entries);
    return isValid && Object.keys(budget).length === entries.length ? budget : undefined;
  },
);

export const experiment = format(
  `expected a JSON object of texts with id, item.id and, if wanted, ${EXPERIMENT_ATTRIBUTES.slice(2).join(', ')}`,
  (value) => {
    const parsed = parseJson(value);
    if (!isRecord(parsed) || !parsed.id || !parsed['item.id']) return undefined;
    const isValid = ([name, text]: [string, unknown]) =>
      EXPERIMENT_ATTRIBUTES.includes(name) && typeof text === 'string' && text !== '';
    return Object.entries(parsed).every(isValid) ? (parsed as { [attribute: string]: string }) : undefined;
  },
);

export const NO_WEB_URL = 'expected an http or https URL';
export const serverUrl = format(NO_WEB_URL, (value) => parseServer(value)?.baseUrl);

export const projectId = matching(
  /^[\w-]+$/,
  'expected the id of a project, as in the address of its page, …/project/<id>',
);

/** The whole URL, as in OpenTelemetry's variable for traces; but no Collector accepts traces at its root. */
export const tracesUrl = format(NO_WEB_URL, (value) => {
  const url = parseWebUrl(value);
  return url?.pathname === '/' ? new URL('/v1/traces', url) : url;
});

/** Those that the program sets itself: with another Authorization the keys would not be sent. */
const OWN_HEADERS =
  /^(?:authorization|connection|content-(?:encoding|length|type)|expect|host|te|trailer|transfer-encoding|upgrade|user-agent|x-langfuse-.*)$/;

export const gatewayHeaders = format(
  'expected name=value,name=value with percent-encoded values, and no header that cc-langfuse sets itself, such as authorization',
  (value) => {
    const headers = parseOtlpHeaders(value);
    return headers && !Object.keys(headers).some((name) => OWN_HEADERS.test(name)) ? headers : undefined;
  },
);

export const otlpHeaders = format('expected name=value,name=value with percent-encoded values', parseOtlpHeaders);

/** As in W3C Trace Context: ids of nothing but zeros and version ff are invalid. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;
export const traceparent = format(
  'expected 00-<trace id, 32 hex digits>-<span id, 16 hex digits>-<flags, 2 hex digits>',
  (value) => {
    const [, trace, span] = TRACEPARENT.exec(value) ?? [];
    return trace && span ? { trace, span } : undefined;
  },
);

function parseWebUrl(value: string): URL | undefined {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  return url && /^https?:$/.test(url.protocol) ? url : undefined;
}

/** Any page of a project, as its address is in the browser. */
const PROJECT_PAGE = /^(.*?)\/project(?:\/([^/]*).*)?$/;

/** Parses the URL of a Langfuse server, or of a project's page there. */
export function parseServer(
  value: string,
): { readonly baseUrl: URL; readonly projectId: string | undefined } | undefined {
  const url = parseWebUrl(value);
  const [page, base = '', projectId] = PROJECT_PAGE.exec(url?.pathname ?? '') ?? [];
  return (
    url && { baseUrl: page === undefined ? url : new URL(`${url.origin}${base}`), projectId: projectId || undefined }
  );
}

/** Whether a text may be a key of any server. Pasted keys often come with a space or a quote. */
export function isKey(value: string): boolean {
  return /^(?:(?!["'])[!-~])+$/.test(value);
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
// What HTTP can carry: a line break would start another header.
const HEADER_VALUE = /^[\t -~\u0080-\u00ff]*$/;

/** Parses headers as OpenTelemetry's `OTEL_EXPORTER_OTLP_HEADERS` has them; undefined if they are malformed. */
export function parseOtlpHeaders(value: string): { readonly [name: string]: string } | undefined {
  const pairs = splitList(value).map((item): [string, string] | undefined => {
    const [, name = '', encoded = ''] = /^([^=]*?)\s*=\s*(.*)$/.exec(item) ?? [];
    const decoded = attempt(() => decodeURIComponent(encoded));
    const isValid = HEADER_NAME.test(name) && decoded !== undefined && HEADER_VALUE.test(decoded);
    return isValid ? [name.toLowerCase(), decoded] : undefined;
  });
  return pairs.every((pair) => pair !== undefined) ? Object.fromEntries(pairs) : undefined;
}

export function splitList(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function isTagKind(name: string): name is TagKind {
  return TAG_KINDS.some((kind) => kind === name);
}
