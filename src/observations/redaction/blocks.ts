import { REDACTED } from './mark.js';
import { KEY, NAME, textBefore, wordBefore } from './secret-names.js';
import { isHarmless } from './secret-values.js';

/** `|` or `>` after a name of YAML, and the indentation of the line below. In a string, a line ends with an escape. */
const BLOCK = /\\{0,7}["']?:[ \t]{1,8}[|>][+-]?\d?[+-]?[ \t]{0,8}(\r?\n|\\{1,7}n)([ \t]{1,64})(?=\S)/g;
const NAME_AT_END = new RegExp(`(?:${NAME}|${KEY})$`, 'i');
const LINE = /[^\r\n]*/y;
const LINE_OF_STRING = /(?:(?!\\{1,7}[nr"'])[^\r\n"])*/y;

/** Redacts the lines below `password: |`, up to the first that is indented less. */
export function redactBlocks(text: string): string {
  let kept = '';
  let from = 0;
  for (const { 0: start, 1: newline = '', 2: indent = '', index } of text.matchAll(BLOCK)) {
    const [name] = NAME_AT_END.exec(textBefore(text, index)) ?? [];
    if (name === undefined || index < from) continue;
    const first = index + start.length;
    const line = newline.startsWith('\\') ? LINE_OF_STRING : LINE;
    const value = text.slice(first, endOfLine(text, first, line));
    if (isHarmless(name, wordBefore(text, index - name.length), value)) continue;
    kept += text.slice(from, first) + REDACTED;
    from = endOfBlock(text, first, newline + indent, line);
  }
  return kept + text.slice(from);
}

function endOfBlock(text: string, first: number, margin: string, line: RegExp): number {
  let end = endOfLine(text, first, line);
  while (text.startsWith(margin, end)) end = endOfLine(text, end + margin.length, line);
  return end;
}

function endOfLine(text: string, start: number, line: RegExp): number {
  line.lastIndex = start;
  line.test(text);
  return line.lastIndex;
}
