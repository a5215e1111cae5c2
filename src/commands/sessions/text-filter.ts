import { memoize } from '../../shared/memoize.js';
import { hasToolResult, parseBlocks } from '../../transcript/file/content.js';
import { type Line, parseLine } from '../../transcript/file/line.js';
import { listAllLines, withReader } from '../../transcript/file/lines.js';
import type { TranscriptReader } from '../../transcript/file/reader.js';

/**
 * Letters and digits, which are in the file as they were read. Marks, spaces and controls need not be: JSON may escape them, and the
 * parts of a command are joined by them. Nor need U+0307, which only the lower case of İ has, and U+FFFD, which replaces bytes that
 * are not UTF-8.
 */
const RUN = /(?:[a-z0-9]|(?![\0-\x7f\ufffd]|\u0307)[\p{L}\p{N}\p{M}\p{S}])+/gu;
/** That long is rare enough, and can be torn apart by two reads. */
const MAX_RUN_CHARS = 64;
const MAX_BYTES_PER_CHAR = 12;
const OVERLAP_BYTES = MAX_RUN_CHARS * MAX_BYTES_PER_CHAR;
const CHUNK_BYTES = 1 << 18;

/** Other programs may write letters and digits as escapes. */
const ESCAPED = /\\u00(?:3\d|[46][1-9a-f]|[57][\da])/i;
const ESCAPE_START = '\\u00';

/** A text that can be a part of a number, and the numbers that JavaScript would write otherwise. */
const PART_OF_NUMBER = /^[-+.\de]+$/;
const INFINITY = '-infinity';
const OTHERWISE_WRITTEN = /[:,[\s]-?(?:\d+(?:\.\d+)?e|\d+\.\d*0[,\]}\s]|[\d.]{16}|0\.000000)/i;

/**
 * Tells faster than by reading its turns whether a transcript may contain a text, in upper or lower case. It overlooks nothing: of
 * lines in which the text may be, it parses those that have all of its letters and digits.
 */
export class TextFilter {
  readonly #wanted: string;
  /** The longest first. */
  readonly #runs: readonly RegExp[];
  readonly #others: readonly RegExp[];
  readonly #window = Buffer.allocUnsafe(OVERLAP_BYTES + CHUNK_BYTES);

  constructor(text: string) {
    this.#wanted = text.toLowerCase();
    const runs = [...new Set(this.#wanted.match(RUN) ?? [])].toSorted((a, b) => b.length - a.length);
    const isNumber = PART_OF_NUMBER.test(this.#wanted) || INFINITY.includes(this.#wanted);
    this.#runs = runs.map((run) => new RegExp([...run].slice(0, MAX_RUN_CHARS).map(matchChar).join(''), 'i'));
    this.#others = isNumber ? [ESCAPED, OTHERWISE_WRITTEN] : [ESCAPED];
  }

  /** Throws if the file cannot be read. */
  mayContain(path: string): boolean {
    return withReader(path, (reader) => {
      if (!this.#mayBeInBytes(reader)) return false;
      for (const source of listAllLines(reader)) {
        const line = this.#mayBeIn(source.bytes.toString('latin1')) ? parseLine(source) : undefined;
        if (line && this.#mayBeInLine(line)) return true;
      }
      return false;
    });
  }

  /** Most files do not contain the longest run. */
  #mayBeInBytes(reader: TranscriptReader): boolean {
    const longest = this.#runs.slice(0, 1);
    let kept = 0;
    for (let start = 0; ; ) {
      const { length } = reader.readBytes({ start, end: start + CHUNK_BYTES }, this.#window.subarray(kept));
      if (length === 0) return false;
      const end = kept + length;
      if (this.#mayBeIn(this.#window.toString('latin1', 0, end), longest)) return true;
      start += length;
      kept = Math.min(OVERLAP_BYTES, end);
      this.#window.copyWithin(0, end - kept, end);
    }
  }

  #mayBeIn(bytes: string, runs = this.#runs): boolean {
    if (runs.every((run) => run.test(bytes))) return true;
    return this.#others.some((other) => (other !== ESCAPED || bytes.includes(ESCAPE_START)) && other.test(bytes));
  }

  #mayBeInLine(line: Line): boolean {
    // What a prompt, a message or a changed input is read from can have tags in between, or JSON in JSON.
    if (line.kind === 'user' && !hasToolResult(line.content)) return this.#mayBeIn(joinTexts(line.content));
    if (line.kind === 'attachment') return this.#mayBeIn(joinTexts(line.fields.attachment));
    return (line.kind === 'user' || line.kind === 'assistant') && this.#isInBlocks(line.content);
  }

  #isInBlocks(content: unknown): boolean {
    return parseBlocks(content).some((block) => {
      if (block.kind === 'text') return containsText(block.text, this.#wanted);
      if (block.kind === 'tool_use') return containsText(block.input, this.#wanted);
      return block.kind === 'tool_result' && containsText(block.content, this.#wanted);
    });
  }
}

function joinTexts(value: unknown): string {
  return Buffer.from([...listTexts(value)].join('\n')).toString('latin1');
}

/** Whether a text or a number in a value contains a text that is in lower case. */
export function containsText(value: unknown, wanted: string): boolean {
  return listTexts(value).some((text) => text.toLowerCase().includes(wanted));
}

/** Matches the bytes of all characters that are this one in lower case, as such or as escapes. */
function matchChar(char: string): string {
  const all = [...new Set([char, ...listUpperCases(char)])].map((each) =>
    each < '\x80' ? each : `${matchBytes(each)}|${matchEscape(each)}`,
  );
  return all.length === 1 && char < '\x80' ? char : `(?:${all.join('|')})`;
}

function matchBytes(char: string): string {
  return [...Buffer.from(char)].map((byte) => `\\x${byte.toString(16)}`).join('');
}

function matchEscape(char: string): string {
  return char
    .split('')
    .map((unit) => `\\\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}

/** The only characters beyond ASCII whose lower case has a letter of ASCII. */
const OTHER_UPPER_CASES: { readonly [char: string]: readonly string[] } = { i: ['\u0130'], k: ['\u212a'] };
/** No character after this has a lower case. */
const LAST_UPPER_CASE = 0x1ffff;
function listUpperCases(char: string): readonly string[] {
  if (char < '\x80') return OTHER_UPPER_CASES[char] ?? [];
  return readUpperCases().get(char) ?? [];
}

const readUpperCases = memoize(() => {
  // At the end of a word, Σ becomes ς.
  const found = new Map([['ς', ['Σ']]]);
  for (let code = 0x80; code <= LAST_UPPER_CASE; code += 1) {
    const char = String.fromCodePoint(code);
    const lower = char.toLowerCase();
    if (lower !== char) found.set(lower, [...(found.get(lower) ?? []), char]);
  }
  return found;
});

/** Lists the texts and numbers in a value. However deep it is, that takes no more of the stack. */
export function listTexts(value: unknown): string[] {
  const texts: string[] = [];
  const left = [value];
  while (left.length > 0) {
    const each = left.pop();
    if (typeof each === 'string' || typeof each === 'number') texts.push(String(each));
    else if (typeof each === 'object' && each !== null)
      for (const inner of Object.values(each).toReversed()) left.push(inner);
  }
  return texts;
}
