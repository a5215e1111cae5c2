export type OtlpHeaders = { readonly [name: string]: string };

const NAME = /^[!#$%&'*+.^_`|~\w-]+$/;
// What HTTP can carry: a line break in it would begin another header.
const VALUE = /^[\t -~\u0080-\u00ff]*$/;

/**
 * The headers that a text names as OpenTelemetry's `OTEL_EXPORTER_OTLP_HEADERS` does: `name=value`, comma-separated, the
 * values percent-encoded. Undefined where it is none such.
 */
export function parseOtlpHeaders(text: string): OtlpHeaders | undefined {
  const headers: [string, string][] = [];
  for (const item of text.split(',').filter((each) => each.trim() !== '')) {
    const [, name = '', encoded = ''] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/.exec(item) ?? [];
    const value = decoded(encoded);
    if (!NAME.test(name) || value === undefined || !VALUE.test(value)) return undefined;
    headers.push([name.toLowerCase(), value]);
  }
  return Object.fromEntries(headers);
}

/** What is shorter may stand anywhere. */
const SHORTEST_SECRET = 4;

/** What of headers must not be told: each value, which may be a scheme and a secret. */
export function headerSecrets(headers: OtlpHeaders): string[] {
  return Object.values(headers)
    .flatMap((value) => value.split(/\s+/))
    .filter(({ length }) => length >= SHORTEST_SECRET);
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
