const BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;
const END = '-----END ';
const MAX_KEY_CHARS = 16_384;
/** The characters of a key, of its headers, and of what may surround its lines in code or in a numbered listing. */
const KEY = /^[\w+/=\s\\"'→:,.-]*$/;
/** A line of a key whose end is missing. */
const KEY_LINE = /(?:[\s"'→]|\\[nrt]|\d{1,6}→){0,16}[A-Za-z0-9+/]{20,}={0,2}/y;

/** Redacts each private key up to its last line or, if that is missing, as far as it looks like a key. */
export function redactPrivateKeys(text: string): string {
  if (!text.includes('-----BEGIN ')) return text;
  let kept = '';
  let from = 0;
  let nextEnd = 0;
  for (const { 0: mark, index } of text.matchAll(BEGIN)) {
    if (index < from) continue;
    const start = index + mark.length;
    if (nextEnd < start) nextEnd = indexOf(text, END, start);
    const end = endOfKey(text, start, nextEnd) ?? endOfKeyLines(text, start);
    if (end === undefined) continue;
    kept += `${text.slice(from, index)}[redacted private key]`;
    from = end;
  }
  return from === 0 ? text : kept + text.slice(from);
}

/** Returns undefined if the text only mentions a key. */
function endOfKey(text: string, start: number, end: number): number | undefined {
  if (end - start > MAX_KEY_CHARS || !KEY.test(text.slice(start, end))) return undefined;
  return indexOf(text, '-----', end + END.length) + 5;
}

function endOfKeyLines(text: string, start: number): number | undefined {
  let end: number | undefined;
  KEY_LINE.lastIndex = start;
  while (KEY_LINE.test(text)) end = KEY_LINE.lastIndex;
  return end;
}

function indexOf(text: string, mark: string, from: number): number {
  const index = text.indexOf(mark, from);
  return index < 0 ? Number.POSITIVE_INFINITY : index;
}
