import { createScanner, getNodeValue, type Node, parseTree } from 'jsonc-parser';
import type { Json } from '../../shared/json.js';

/*
 * Edits JSON text and leaves every other byte as it was. jsonc-parser's own edits do not: they reformat each line that they
 * touch, and remove what follows the last item of a list together with that item. Values are removed from text with comments
 * and trailing commas, too, but only put into text without: Claude Code ignores settings with any.
 */

export type JsonPath = readonly (string | number)[];

/** Returns undefined if nothing is at the path. */
export function getValue(text: string, path: JsonPath): unknown {
  const node = findNode(text, path);
  return node && getNodeValue(node);
}

/** Sets the value at a path and creates what the path lacks. An index beyond the end of a list appends to it. */
export function setValue(text: string, path: JsonPath, value: Json): string {
  const root = parseRoot(text);
  if (!root) return `${JSON.stringify(nest(path, value), null, 2)}\n`;
  const { node, rest } = findDeepest(root, path);
  const style = detectStyle(text, root);
  const [name, ...deeper] = rest;
  if (name === undefined && getNodeValue(node) === value) return text;
  if (name === undefined)
    return replace(text, node.offset, endOf(node), format(value, indentAt(text, node.offset), style));
  const key = typeof name === 'string' ? `${JSON.stringify(name)}:${style.space}` : '';
  return insertItem(text, node, style, (indent) => key + format(nest(deeper, value), indent, style));
}

/** Removes what is at a path, with its comma and its line. */
export function removeValue(text: string, path: JsonPath): string {
  const node = findNode(text, path);
  const member = node?.parent?.type === 'property' ? node.parent : node;
  return member?.parent ? removeMember(text, member, member.parent) : text;
}

function findNode(text: string, path: JsonPath): Node | undefined {
  const root = parseRoot(text);
  const found = root && findDeepest(root, path);
  return found?.rest.length === 0 ? found.node : undefined;
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

/** How a file is laid out. All of it is empty if the file is one line without spaces, as a program writes it. */
interface Style {
  readonly eol: string;
  /** One step of indentation. */
  readonly unit: string;
  /** What is between a colon or a comma and what follows on the same line. */
  readonly space: string;
}

function detectStyle(text: string, root: Node): Style {
  const [first] = root.children ?? [];
  if (first && !text.trim().includes('\n')) return { eol: '', unit: '', space: '' };
  const unit = first && isFirstOnLine(text, first.offset) ? indentAt(text, first.offset) : '';
  return { eol: text.includes('\r\n') ? '\r\n' : '\n', unit: unit || '  ', space: ' ' };
}

function format(value: Json, indent: string, { eol, unit }: Style): string {
  return JSON.stringify(value, null, unit).replaceAll('\n', eol + indent);
}

/** Inserts an item after the last one of an object or a list, laid out like the others. */
function insertItem(text: string, parent: Node, { eol, unit, space }: Style, item: (indent: string) => string): string {
  const last = parent.children?.at(-1);
  const outer = indentAt(text, parent.offset);
  if (!last) {
    const start = parent.offset + 1;
    const closing = text.slice(start, endOf(parent)).includes('\n') ? '' : eol + outer;
    return replace(text, start, start, eol + outer + unit + item(outer + unit) + closing);
  }
  const after = endOf(last);
  if (!isFirstOnLine(text, last.offset)) return replace(text, after, after, `,${space}${item(outer)}`);
  const indent = indentAt(text, last.offset);
  return replace(text, after, after, `,${eol}${indent}${item(indent)}`);
}

function removeMember(text: string, member: Node, parent: Node): string {
  const siblings = parent.children ?? [];
  const place = siblings.indexOf(member);
  const [previous, next] = [siblings[place - 1], siblings[place + 1]];
  const start = member.offset;
  const comma = findCommaAfter(text, endOf(member));
  const end = comma === undefined ? endOf(member) : comma + 1;
  const [opening, closing] = [parent.offset + 1, endOf(parent) - 1];
  if (isBlank(text.slice(opening, start) + text.slice(end, closing))) return replace(text, opening, closing, '');
  // The last member has its comma before it.
  const before = previous && comma === undefined ? findCommaAfter(text, endOf(previous)) : undefined;
  if (before !== undefined && !isFirstOnLine(text, start) && isBlank(text.slice(before + 1, start)))
    return replace(text, before, end, '');
  const [from, to] = findExtent(text, start, end, next);
  const shorter = replace(text, from, to, '');
  return before === undefined ? shorter : replace(shorter, before, before + 1, '');
}

/** The range to remove for a member: its line if nothing else is on it, else with the space before the next one. */
function findExtent(text: string, start: number, end: number, next: Node | undefined): [from: number, to: number] {
  if (isFirstOnLine(text, start)) {
    const lineEnd = endOfLine(text, end);
    return isBlank(text.slice(end, lineEnd)) ? [startOfLine(text, start), lineEnd] : [start, end];
  }
  return next && isBlank(text.slice(end, next.offset)) ? [start, next.offset] : [start, end];
}

/** The offset of the comma after an item, if only space and comments are in between. */
function findCommaAfter(text: string, offset: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(offset);
  scanner.scan();
  const next = scanner.getTokenOffset();
  return text[next] === ',' ? next : undefined;
}

function replace(text: string, start: number, end: number, replacement: string): string {
  return text.slice(0, start) + replacement + text.slice(end);
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

/** The offset after the line break, or at the end of the text. */
function endOfLine(text: string, offset: number): number {
  const lineBreak = text.indexOf('\n', offset);
  return lineBreak < 0 ? text.length : lineBreak + 1;
}

function isFirstOnLine(text: string, offset: number): boolean {
  return startOfLine(text, offset) > 0 && isBlank(text.slice(startOfLine(text, offset), offset));
}

function indentAt(text: string, offset: number): string {
  return /^[ \t]*/.exec(text.slice(startOfLine(text, offset)))?.[0] ?? '';
}
