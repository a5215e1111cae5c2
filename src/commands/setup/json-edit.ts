import { createScanner, type Node, parseTree } from 'jsonc-parser';
import type { Json } from '../../shared/json.js';

/*
 * Edits JSON text, with comments and trailing commas, and leaves every other byte as it was. jsonc-parser's own edits do not:
 * they reformat each line that they touch, and remove what follows the last item of a list together with that item.
 */

export type JsonPath = readonly (string | number)[];

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Sets the value at a path and creates what the path lacks. An index beyond the end of a list appends to it. */
export function setValue(text: string, path: JsonPath, value: Json): string {
  const root = parseRoot(text);
  if (!root) return `${JSON.stringify(nest(path, value), null, 2)}\n`;
  const { node, rest } = findDeepest(root, path);
  const style = detectStyle(text, root);
  const [name, ...deeper] = rest;
  if (name === undefined) {
    const layout = { ...style, indent: indentAt(text, node.offset) };
    return applyEdits(text, [{ start: node.offset, end: endOf(node), text: format(value, layout) }]);
  }
  const key = typeof name === 'string' ? `${JSON.stringify(name)}:${style.isOneLine ? '' : ' '}` : '';
  return applyEdits(
    text,
    insertItem(text, node, style, (layout) => key + format(nest(deeper, value), layout)),
  );
}

/** Removes what is at a path, with its comma and its line. */
export function removeValue(text: string, path: JsonPath): string {
  const root = parseRoot(text);
  const { node, rest } = root ? findDeepest(root, path) : { node: undefined, rest: path };
  const member = node?.parent?.type === 'property' ? node.parent : node;
  return member?.parent && rest.length === 0 ? applyEdits(text, removeMember(text, member, member.parent)) : text;
}

function parseRoot(text: string): Node | undefined {
  return parseTree(text, [], { allowTrailingComma: true });
}

/** The node furthest along the path, and the rest of the path. If an object has a key twice, the last one counts. */
function findDeepest(root: Node, path: JsonPath): { node: Node; rest: JsonPath } {
  let node = root;
  for (const [depth, step] of path.entries()) {
    const next =
      typeof step === 'number'
        ? node.children?.[step]
        : node.children?.findLast(({ children }) => children?.[0]?.value === step)?.children?.[1];
    if (!next) return { node, rest: path.slice(depth) };
    node = next;
  }
  return { node, rest: [] };
}

function nest(path: JsonPath, value: Json): Json {
  return path.reduceRight<Json>((inner, step) => (typeof step === 'string' ? { [step]: inner } : [inner]), value);
}

interface Style {
  readonly eol: string;
  /** One step of indentation. */
  readonly unit: string;
  /** All on one line without spaces, as a program writes it. */
  readonly isOneLine: boolean;
}

interface Layout extends Style {
  readonly indent: string;
}

function detectStyle(text: string, root: Node): Style {
  const [first] = root.children ?? [];
  const unit = first && isFirstOnLine(text, first.offset) ? indentAt(text, first.offset) : '';
  return {
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    unit: unit === '' ? '  ' : unit,
    isOneLine: first !== undefined && !text.trim().includes('\n'),
  };
}

function format(value: Json, { eol, unit, isOneLine, indent }: Layout): string {
  if (isOneLine) return JSON.stringify(value);
  return JSON.stringify(value, null, unit).replaceAll('\n', `${eol}${indent}`);
}

/** Inserts an item after the last one of an object or a list, laid out like the others. */
function insertItem(text: string, parent: Node, style: Style, item: (layout: Layout) => string): Edit[] {
  const last = parent.children?.at(-1);
  const outer = indentAt(text, parent.offset);
  if (!last) {
    const inner = { ...style, indent: outer + style.unit };
    const start = parent.offset + 1;
    if (style.isOneLine) return [{ start, end: start, text: item(inner) }];
    const closing = text.slice(start, endOf(parent)).includes('\n') ? '' : style.eol + outer;
    return [{ start, end: start, text: `${style.eol}${inner.indent}${item(inner)}${closing}` }];
  }
  const comma = findCommaAfter(text, endOf(last));
  const withComma = comma === undefined ? [{ start: endOf(last), end: endOf(last), text: ',' }] : [];
  const after = comma === undefined ? endOf(last) : comma + 1;
  if (!isFirstOnLine(text, last.offset)) {
    const inline = item({ ...style, indent: outer });
    return [...withComma, { start: after, end: after, text: style.isOneLine ? inline : ` ${inline}` }];
  }
  const indent = indentAt(text, last.offset);
  const start = after + (COMMENTS_UP_TO_LINE_END.exec(text.slice(after))?.[0].length ?? 0);
  return [...withComma, { start, end: start, text: `${style.eol}${indent}${item({ ...style, indent })}` }];
}

const COMMENTS_UP_TO_LINE_END = /^(?:[ \t]|\/\*(?:(?!\*\/)[^\r\n])*\*\/)*(?:\/\/[^\r\n]*)?(?=\r?\n)/;

function removeMember(text: string, member: Node, parent: Node): Edit[] {
  const siblings = parent.children ?? [];
  const place = siblings.indexOf(member);
  const [previous, next] = [siblings[place - 1], siblings[place + 1]];
  const start = member.offset;
  const comma = findCommaAfter(text, endOf(member));
  const end = comma === undefined ? endOf(member) : comma + 1;
  const [opening, closing] = [parent.offset + 1, endOf(parent) - 1];
  if (isBlank(text.slice(opening, start) + text.slice(end, closing)))
    return [{ start: opening, end: closing, text: '' }];
  // The last member has its comma before it.
  const before = previous && comma === undefined ? findCommaAfter(text, endOf(previous)) : undefined;
  const commaBefore = before === undefined ? [] : [{ start: before, end: before + 1, text: '' }];
  if (isFirstOnLine(text, start)) {
    const lineEnd = endOfLine(text, end);
    if (!isBlank(text.slice(end, lineEnd))) return [...commaBefore, { start, end, text: '' }];
    const lineBreak = /^\r?\n/.exec(text.slice(lineEnd))?.[0] ?? '';
    return [...commaBefore, { start: startOfLine(text, start), end: lineEnd + lineBreak.length, text: '' }];
  }
  if (next && isBlank(text.slice(end, next.offset))) return [{ start, end: next.offset, text: '' }];
  if (before !== undefined && isBlank(text.slice(before + 1, start))) return [{ start: before, end, text: '' }];
  return [...commaBefore, { start, end, text: '' }];
}

/** Applies edits that are in the order of the text. */
function applyEdits(text: string, edits: readonly Edit[]): string {
  return edits
    .toReversed()
    .reduce((rest, { start, end, text: replacement }) => rest.slice(0, start) + replacement + rest.slice(end), text);
}

/** The offset of the comma after an item, if only space and comments are in between. */
function findCommaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === ',' ? next : undefined;
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function startOfLine(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}

/** The offset of the line break, or of the text's end. */
function endOfLine(text: string, offset: number): number {
  const end = /\r?\n/.exec(text.slice(offset))?.index;
  return end === undefined ? text.length : offset + end;
}

function isFirstOnLine(text: string, offset: number): boolean {
  return startOfLine(text, offset) > 0 && isBlank(text.slice(startOfLine(text, offset), offset));
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(startOfLine(text, offset)))?.[0] ?? '';
}
