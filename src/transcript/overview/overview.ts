import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { basename } from 'node:path';
import { describeMedia } from '../file/content.js';
import { type Line, toLine } from '../file/line.js';
import { readLines } from '../file/lines.js';
import { OPEN_FLAGS } from '../file/reader.js';
import type { OtherLine } from '../file/schema.js';
import { type PromptText, parsePrompt } from '../turns/prompt.js';
import { TITLE_KINDS, type TitleKind } from '../turns/turn.js';
import { classifyUserLine } from '../turns/user-line.js';

/** What the head and the tail of a transcript tell of its session. */
export interface SessionOverview {
  readonly sessionId: string;
  readonly path: string;
  readonly bytes: number;
  /** When the file was made and last changed, in ms since 1970. */
  readonly bornAt: number;
  readonly changedAt: number;
  /** By its lines, in ms since 1970. */
  readonly startedAt: number | undefined;
  readonly lastAt: number | undefined;
  /** The folders that it ran in, the first one first. */
  readonly folders: readonly string[];
  /** The uuid of its first prompt: forks have the same. */
  readonly firstPrompt: string | undefined;
  /** As the user, or the program, has named it; else its first prompt. */
  readonly title: string | undefined;
  readonly model: string | undefined;
  /** Of Claude Code, when the session began. */
  readonly version: string | undefined;
}

const WINDOW_BYTES = 1 << 16;
const FIRST_BYTES = 1 << 13;
const NEWLINE = 0x0a;
type User = Extract<Line, { kind: 'user' }>;

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

// One pair for all files: thousands are looked at, one after the other.
const headWindow = Buffer.allocUnsafe(WINDOW_BYTES);
const tailWindow = Buffer.allocUnsafe(WINDOW_BYTES);

/** Undefined where the file is no transcript; throws where it cannot be read. */
export function readOverview(path: string): SessionOverview | undefined {
  const file = openSync(path, OPEN_FLAGS);
  try {
    const status = fstatSync(file);
    if (!status.isFile()) return undefined;
    const { size, birthtimeMs, mtimeMs } = status;
    const tail = tailWindow.subarray(0, readSync(file, tailWindow, 0, WINDOW_BYTES, Math.max(0, size - WINDOW_BYTES)));
    const end = endOf(tail, size <= WINDOW_BYTES);
    const beginning = size <= WINDOW_BYTES ? beginningOf(tail) : beginningIn(file);
    // The last title is the one that counts.
    const titles = { ...beginning.titles, ...end.titles };
    if (!beginning.isKnown && !end.isKnown) return undefined;
    const name = basename(path, '.jsonl');
    return {
      sessionId: UUID.test(name) ? name : (end.sessionId ?? beginning.sessionId ?? name),
      path,
      bytes: size,
      bornAt: Math.trunc(birthtimeMs || mtimeMs),
      changedAt: mtimeMs,
      startedAt: beginning.at,
      lastAt: end.at ?? beginning.at,
      folders: [...new Set([beginning.cwd, end.cwd].filter((folder) => folder !== undefined))],
      firstPrompt: beginning.prompt?.fields.uuid,
      title:
        TITLE_KINDS.map((kind) => titles[kind]).find((title) => title) ??
        (beginning.prompt && wordsOf(parsePrompt(beginning.prompt))),
      model: end.model,
      version: beginning.prompt?.fields.version,
    };
  } finally {
    closeSync(file);
  }
}

function wordsOf({ content, media }: PromptText): string {
  return content || media.map((block) => `[${describeMedia(block)}]`).join(' ');
}

/** When something last happened in a session, in ms since 1970. */
export function lastActivity({ lastAt, changedAt }: Pick<SessionOverview, 'lastAt' | 'changedAt'>): number {
  return lastAt ?? changedAt;
}

/** The uuid of a transcript's first prompt, wherever its line ends: a picture in it is longer than any window. */
export function findFirstPrompt(path: string): string | undefined {
  for (const line of readLines(path))
    if (line.kind === 'user' && classifyUserLine(line) === 'prompt') return line.fields.uuid;
  return undefined;
}

/** Whether anything was said behind a byte of a transcript. Lines that only keep its books do not count. */
export function hasMessagesAfter(path: string, offset: number): boolean {
  const file = openSync(path, OPEN_FLAGS);
  try {
    const { size } = fstatSync(file);
    if (size - offset > WINDOW_BYTES) return true;
    const window = tailWindow.subarray(0, readSync(file, tailWindow, 0, WINDOW_BYTES, offset));
    for (const bytes of linesFrom(window)) {
      const line = lineOf(bytes);
      if (line?.kind === 'assistant' || (line?.kind === 'user' && !line.fields.isMeta)) return true;
    }
    return false;
  } finally {
    closeSync(file);
  }
}

/**
 * Thousands of files are looked at, so only the few lines that can tell something new are parsed; the others are known by
 * their first bytes (measured: of the time that reading takes, this is about as much again; parsing every line, fifteen
 * times as much).
 */
interface Seen {
  /** Whether a line was seen that only transcripts have. */
  isKnown: boolean;
  at: number | undefined;
  cwd: string | undefined;
  sessionId: string | undefined;
  prompt: User | undefined;
  model: string | undefined;
  titles: { [kind in TitleKind]?: string | undefined };
}

const BOOKKEEPING =
  /^\{"type":"(?:mode|permission-mode|atis-latch|file-history-|api-request|last-prompt|tools-used|cost-state)/;
const TITLE = /^\{"type":"(custom-title|ai-title|summary)"/;
const MODEL = /"model":"([^"]+)"/;
const TYPE_BYTES = 48;
/** In `{"type":`. */
const LETTER_T = 0x74;
const ANSWER_BYTES = 800;

function nothingSeen(): Seen {
  return {
    isKnown: false,
    at: undefined,
    cwd: undefined,
    sessionId: undefined,
    prompt: undefined,
    model: undefined,
    titles: {},
  };
}

/** Mostly it is told within few lines; where one of them is long, as far as the window goes. */
function beginningIn(file: number): Seen {
  const seen = beginningOf(headWindow.subarray(0, readSync(file, headWindow, 0, FIRST_BYTES, 0)));
  if (isBegun(seen)) return seen;
  return beginningOf(headWindow.subarray(0, readSync(file, headWindow, 0, WINDOW_BYTES, 0)));
}

function isBegun({ at, cwd, prompt }: Seen): boolean {
  return at !== undefined && cwd !== undefined && prompt !== undefined;
}

function beginningOf(head: Buffer): Seen {
  const seen = nothingSeen();
  for (let from = 0; ; ) {
    const to = head.indexOf(NEWLINE, from);
    if (to < 0) return seen;
    see(head, from, to, isBegun(seen), seen);
    from = to + 1;
  }
}

/** From the last line to the first, which may have begun before the window. */
function endOf(tail: Buffer, isWhole: boolean): Seen {
  const seen = nothingSeen();
  for (let to = tail.length; to > 0; ) {
    const from = tail.lastIndexOf(NEWLINE, to - 1) + 1;
    if (from === 0 && !isWhole) break;
    see(tail, from, to, seen.at !== undefined && seen.cwd !== undefined, seen);
    seen.model ??= modelOf(tail.toString('latin1', from, Math.min(to, from + ANSWER_BYTES)));
    to = from - 1;
  }
  return seen;
}

function see(window: Buffer, from: number, to: number, isEnough: boolean, seen: Seen): void {
  const hasTypeFirst = window[from + 2] === LETTER_T;
  if (isEnough && !hasTypeFirst) return;
  const type = hasTypeFirst ? window.toString('latin1', from, Math.min(to, from + TYPE_BYTES)) : '';
  const kind = TITLE.exec(type)?.[1] as TitleKind | undefined;
  if (!kind && (isEnough || BOOKKEEPING.test(type))) {
    seen.isKnown ||= BOOKKEEPING.test(type);
    return;
  }
  const line = lineOf(window.subarray(from, to));
  if (!line || line.kind === 'unreadable' || line.kind === 'request') return;
  if (kind && line.kind === 'other') seen.titles[kind] ??= titleOf(line.fields, kind);
  seen.at ??= line.at;
  seen.cwd ??= line.fields.cwd;
  seen.sessionId ??= line.fields.sessionId;
  seen.isKnown ||= seen.sessionId !== undefined || line.kind === 'user' || line.kind === 'assistant';
  if (line.kind === 'user' && classifyUserLine(line) === 'prompt') seen.prompt ??= line;
}

function titleOf({ customTitle, aiTitle, summary }: OtherLine, kind: TitleKind): string | undefined {
  return { 'custom-title': customTitle, 'ai-title': aiTitle, summary }[kind];
}

function modelOf(beginning: string): string | undefined {
  const model = beginning.includes('"role":"assistant"') ? MODEL.exec(beginning)?.[1] : undefined;
  return model === '<synthetic>' ? undefined : model;
}

function lineOf(bytes: Buffer): Line | undefined {
  return toLine({ number: 0, start: 0, end: 0, bytes });
}

function* linesFrom(window: Buffer): Generator<Buffer, void, undefined> {
  for (let from = 0; ; ) {
    const to = window.indexOf(NEWLINE, from);
    if (to < 0) return;
    yield window.subarray(from, to);
    from = to + 1;
  }
}
