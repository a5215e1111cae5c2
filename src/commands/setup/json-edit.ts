import { createScanner, type Node, parseTree } from 'jsonc-parser';
import type { Json } from '../../shared/json.js';

/*
 * Changes in a text of JSON, comments and trailing commas allowed, that leave every other byte as it was. The library's own
 * edits do not: they lay out anew each line they touch, and take what stands behind a list's last item along with it.
 */

export type JsonPath = readonly (string | number)[];

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The text with this value at the path; what the path lacks is made. An index beyond the end of a list appends to it. */
export function withValue(text: string, path: JsonPath, value: Json): string {
  const root = rootOf(text);
  if (!root) return `${JSON.stringify(nested(path, value), null, 2)}\n`;
  const { node, rest } = deepest(root, path);
  const style = styleOf(text, root);
  const [name, ...deeper] = rest;
  if (name === undefined) {
    const layout = { ...style, indent: indentAt(text, node.offset) };
    return applied(text, [{ start: node.offset, end: endOf(node), text: laidOut(value, layout) }]);
  }
  const key = typeof name === 'string' ? `${JSON.stringify(name)}:${style.isOneLine ? '' : ' '}` : '';
  return applied(
    text,
    insertion(text, node, style, (layout) => key + laidOut(nested(deeper, value), layout)),
  );
}

/** The text without what is at the path, its comma and its line. */
export function without(text: string, path: JsonPath): string {
  const root = rootOf(text);
  const { node, rest } = root ? deepest(root, path) : { node: undefined, rest: path };
  const member = node?.parent?.type === 'property' ? node.parent : node;
  return member?.parent && rest.length === 0 ? applied(text, removal(text, member, member.parent)) : text;
}

function rootOf(text: string): Node | undefined {
  return parseTree(text, [], { allowTrailingComma: true });
}

/** The node that goes furthest along the path, and what is left of it. Of a key that stands twice the last counts. */
function deepest(root: Node, path: JsonPath): { node: Node; rest: JsonPath } {
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

function nested(path: JsonPath, value: Json): Json {
  return path.reduceRight<Json>((inner, step) => (typeof step === 'string' ? { [step]: inner } : [inner]), value);
}

interface Style {
  readonly eol: string;
  /** One step of indentation. */
  readonly unit: string;
  /** All on one line, without a space: written by a program. */
  readonly isOneLine: boolean;
}

interface Layout extends Style {
  readonly indent: string;
}

function styleOf(text: string, root: Node): Style {
  const [first] = root.children ?? [];
  const unit = first && isFirstOnLine(text, first.offset) ? indentAt(text, first.offset) : '';
  return {
    eol: text.includes('\r\n') ? '\r\n' : '\n',
    unit: unit === '' ? '  ' : unit,
    isOneLine: first !== undefined && !text.trim().includes('\n'),
  };
}

function laidOut(value: Json, { eol, unit, isOneLine, indent }: Layout): string {
  if (isOneLine) return JSON.stringify(value);
  return JSON.stringify(value, null, unit).replaceAll('\n', `${eol}${indent}`);
}

/** Puts an item behind the last of an object or a list, in the manner of the others. */
function insertion(text: string, parent: Node, style: Style, item: (layout: Layout) => string): Edit[] {
  const last = parent.children?.at(-1);
  const outer = indentAt(text, parent.offset);
  if (!last) {
    const inner = { ...style, indent: outer + style.unit };
    const start = parent.offset + 1;
    if (style.isOneLine) return [{ start, end: start, text: item(inner) }];
    const closing = text.slice(start, endOf(parent)).includes('\n') ? '' : style.eol + outer;
    return [{ start, end: start, text: `${style.eol}${inner.indent}${item(inner)}${closing}` }];
  }
  const comma = commaAfter(text, endOf(last));
  const withComma = comma === undefined ? [{ start: endOf(last), end: endOf(last), text: ',' }] : [];
  const after = comma === undefined ? endOf(last) : comma + 1;
  if (!isFirstOnLine(text, last.offset)) {
    const inline = item({ ...style, indent: outer });
    return [...withComma, { start: after, end: after, text: style.isOneLine ? inline : ` ${inline}` }];
  }
  const indent = indentAt(text, last.offset);
  const start = after + (COMMENTS_TO_THE_END_OF_THE_LINE.exec(text.slice(after))?.[0].length ?? 0);
  return [...withComma, { start, end: start, text: `${style.eol}${indent}${item({ ...style, indent })}` }];
}

const COMMENTS_TO_THE_END_OF_THE_LINE = /^(?:[ \t]|\/\*(?:(?!\*\/)[^\r\n])*\*\/)*(?:\/\/[^\r\n]*)?(?=\r?\n)/;

function removal(text: string, member: Node, parent: Node): Edit[] {
  const siblings = parent.children ?? [];
  const place = siblings.indexOf(member);
  const [previous, next] = [siblings[place - 1], siblings[place + 1]];
  const start = member.offset;
  const comma = commaAfter(text, endOf(member));
  const end = comma === undefined ? endOf(member) : comma + 1;
  const [opening, closing] = [parent.offset + 1, endOf(parent) - 1];
  if (onlyWhitespace(text.slice(opening, start) + text.slice(end, closing)))
    return [{ start: opening, end: closing, text: '' }];
  // Of the last one the comma stands before it.
  const before = previous && comma === undefined ? commaAfter(text, endOf(previous)) : undefined;
  const commaBefore = before === undefined ? [] : [{ start: before, end: before + 1, text: '' }];
  if (isFirstOnLine(text, start)) {
    const lineEnd = endOfLine(text, end);
    if (!onlyWhitespace(text.slice(end, lineEnd))) return [...commaBefore, { start, end, text: '' }];
    return [...commaBefore, { start: startOfLine(text, start), end: afterEndOfLine(text, lineEnd), text: '' }];
  }
  if (next && onlyWhitespace(text.slice(end, next.offset))) return [{ start, end: next.offset, text: '' }];
  if (before !== undefined && onlyWhitespace(text.slice(before + 1, start))) return [{ start: before, end, text: '' }];
  return [...commaBefore, { start, end, text: '' }];
}

function applied(text: string, edits: readonly Edit[]): string {
  const lastFirst = edits.toReversed();
  return lastFirst.reduce((rest, { start, end, text: by }) => rest.slice(0, start) + by + rest.slice(end), text);
}

/** Where the comma behind an item stands, with nothing but space and comments between. */
function commaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === ',' ? next : undefined;
}

function onlyWhitespace(text: string): boolean {
  return text.trim() === '';
}

function endOf({ offset, length }: Node): number {
  return offset + length;
}

function startOfLine(text: string, offset: number): number {
  return text.lastIndexOf('\n', offset - 1) + 1;
}

/** Where the line's own characters end. */
function endOfLine(text: string, offset: number): number {
  const end = /\r?\n/.exec(text.slice(offset))?.index;
  return end === undefined ? text.length : offset + end;
}

function afterEndOfLine(text: string, lineEnd: number): number {
  return lineEnd + (/^\r?\n/.exec(text.slice(lineEnd, lineEnd + 2))?.[0].length ?? 0);
}

function isFirstOnLine(text: string, offset: number): boolean {
  return startOfLine(text, offset) > 0 && onlyWhitespace(text.slice(startOfLine(text, offset), offset));
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(startOfLine(text, offset)))?.[0] ?? '';
}
