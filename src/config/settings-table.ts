import * as z from 'zod/mini';
import { TAG_KINDS } from '../observations/build/tags.js';
import { isRecord, type Json, parseJson } from '../shared/json.js';
import { NO_WHOLE_NUMBER, WHOLE_NUMBER } from '../shared/whole-number.js';
import { parseOtlpHeaders } from './otlp-headers.js';
import { traceparent } from './traceparent.js';

export const NO_WEB_URL = 'expected an http or https URL';

const text = z.string();
const positive = z.pipe(z.string().check(z.regex(WHOLE_NUMBER, NO_WHOLE_NUMBER)), z.transform(Number));
const toggleOr = (message: string) =>
  z.pipe(
    z.string().check(z.regex(/^(?:true|false)$/i, message)),
    z.transform((value) => value.toLowerCase() === 'true'),
  );
const toggle = toggleOr('expected true or false');
const lowerCase = z.pipe(
  z.string(),
  z.transform((value) => value.toLowerCase()),
);
const webUrl = z.pipe(
  z.string().check(z.refine(isWebUrl, NO_WEB_URL)),
  z.transform((value) => new URL(value)),
);
/** As OpenTelemetry's variable for traces names it, whole; but nobody takes traces at the root. */
const tracesUrl = z.pipe(
  webUrl,
  z.transform((url) => (url.pathname === '/' ? new URL('/v1/traces', url) : url)),
);
const otlpHeaders = z.pipe(
  z
    .string()
    .check(
      z.refine(
        (value) => parseOtlpHeaders(value) !== undefined,
        'expected name=value,name=value with percent-encoded values',
      ),
    ),
  z.transform((value) => parseOtlpHeaders(value) ?? {}),
);
const list = z.pipe(
  z.string(),
  z.transform((value) =>
    value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  ),
);
const tagKinds = z.pipe(
  z.pipe(
    list,
    z.transform((names) => names.map((name) => name.toLowerCase()).filter((name) => name !== 'none')),
  ),
  z.array(z.enum(TAG_KINDS, `expected none, or of ${TAG_KINDS.join(', ')} those that are wanted`)),
);
const jsonObject = z.pipe(
  z.string().check(z.refine((value) => isRecord(parseJson(value)), 'expected a JSON object')),
  z.transform((value) => parseJson(value) as { [key: string]: Json }),
);

/** What each setting may say, by its name without `LANGFUSE_`. */
export const Environment = z.object({
  PUBLIC_KEY: z.optional(text),
  SECRET_KEY: z.optional(text),
  BASE_URL: z._default(webUrl, new URL('https://cloud.langfuse.com')),
  USER_ID: z.optional(text),
  TAGS: z._default(list, []),
  AUTO_TAGS: z._default(tagKinds, [...TAG_KINDS]),
  METADATA: z._default(jsonObject, {}),
  TRACING_ENVIRONMENT: z.optional(
    text.check(
      z.regex(
        /^(?!langfuse)[a-z0-9-_]{1,40}$/,
        'expected at most 40 of a-z, 0-9, - and _, not beginning with "langfuse"',
      ),
    ),
  ),
  RELEASE: z.optional(text),
  TIMEOUT: z._default(positive, 10_000),
  MAX_CHARS: z._default(positive, 200_000),
  DEBUG: z._default(toggle, false),
  TRACEPARENT: z.optional(traceparent),
  TRACE_SEED: z.optional(text),
  CAPTURE: z._default(
    z.pipe(
      lowerCase,
      z.enum(['full', 'no_tool_io', 'metadata'], 'expected full, no_tool_io or metadata; taken as metadata'),
    ),
    'full',
  ),
  REDACT: z._default(toggle, true),
  SCORES: z._default(toggle, false),
  MEDIA: z._default(toggleOr('expected true or false; taken as false'), true),
  INPUT: z._default(z.pipe(lowerCase, z.enum(['answered', 'request'], 'expected answered or request')), 'answered'),
  REDACT_EXTRA: z.optional(text),
  OTLP_URL: z.optional(tracesUrl),
  OTLP_HEADERS: z._default(otlpHeaders, {}),
  TRANSPORT: z._default(
    z.pipe(lowerCase, z.enum(['auto', 'otlp', 'ingestion'], 'expected auto, otlp or ingestion')),
    'auto',
  ),
});
export type Environment = z.infer<typeof Environment>;
export type Name = keyof Environment;

export function isWebUrl(value: string): boolean {
  return /^https?:$/.test(urlOf(value)?.protocol ?? '');
}

function urlOf(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined;
}
