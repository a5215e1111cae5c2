import { basename } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { parseJson } from '../../shared/json.js';
import { describeMedia } from '../file/content.js';
import { parseLine, type UserLine } from '../file/line.js';
import { parseLines, withReader } from '../file/lines.js';
import type { TranscriptReader } from '../file/reader.js';
import { classifyLine } from '../turns/classify-line.js';
import { parsePromptText } from '../turns/prompt.js';
import { readTitle } from '../turns/session-facts.js';
import { TITLE_KINDS, type TitleKind } from '../turns/turn.js';
import { SESSION_ID } from './related-sessions.js';
import type { SessionIndex } from './session-index.js';

/** What the beginning and the end of a transcript say about its session. Times are in ms since 1970. */
export interface SessionOverview {
  readonly sessionId: string;
  readonly path: string;
  readonly bytes: number;
  /** When the file was created and last changed. */
  readonly bornAt: number;
  readonly changedAt: number;
  /** The time of the first line that has one. */
  readonly startedAt: number | undefined;
  /** The time of the last line that has one, else when the file was last changed. */
  readonly lastActivityAt: number;
  /** The folders in which it began and ended. */
  readonly folders: readonly string[];
  /** The uuid of its first prompt, which its forks have too. */
  readonly firstPrompt: string | undefined;
  /** The name that the user or the program gave it, else its first prompt. */
  readonly title: string | undefined;
  readonly model: string | undefined;
  /** Claude Code's version when the session began. */
  readonly version: string | undefined;
}

const WINDOW_BYTES = 1 << 16;
const FIRST_BYTES = 1 << 13;
const NEWLINE = 0x0a;

// Thousands of files are read one after the other: all of them use these two buffers.
const headWindow = Buffer.allocUnsafe(WINDOW_BYTES);
const tailWindow = Buffer.allocUnsafe(WINDOW_BYTES);

/** Undefined if the file is not a transcript; throws if it cannot be read. */
export function readOverview(path: string): SessionOverview | undefined {
  const { overview, title } = readEnds(path);
  return overview && { ...overview, title: title?.text };
}

const VERSION = '1';

/** What is remembered of a transcript: nothing that was said, so only the place of its title. */
interface Remembered {
  readonly overview?: Omit<SessionOverview, 'title'> | undefined;
  readonly title?: Place | undefined;
}

/** The same, but a file that has not changed is not read again until its title is asked for. */
export function recallOverview(path: string, index: SessionIndex): SessionOverview | undefined {
  const key = `${VERSION} ${index.identify(path)}`;
  const known = index.read<Remembered>(path, 'overview', key);
  if (!known) {
    const { overview, title } = readEnds(path);
    index.write(path, 'overview', key, { overview, title: title?.place });
    return overview && { ...overview, title: title?.text };
  }
  const { overview, title } = known;
  if (!overview) return undefined;
  let text: string | undefined;
  return {
    ...overview,
    get title() {
      text ??= title && attempt(() => readTitleAt(path, title));
      return text;
    },
  };
}

/** Lists the uuids of first prompts that are remembered, whether or not the files have changed since. */
export function recallFirstPrompts(index: SessionIndex) {
  const known = [...index.readAll<Remembered>('overview')];
  return known.flatMap(([path, { overview }]) => (overview?.firstPrompt ? [{ path, name: overview.firstPrompt }] : []));
}

function readEnds(path: string): { overview?: Omit<SessionOverview, 'title'>; title?: Title | undefined } {
  return withReader(path, (reader) => {
    const { bytes, bornAt, changedAt } = reader.status;
    const isWhole = bytes <= WINDOW_BYTES;
    const start = Math.max(0, bytes - WINDOW_BYTES);
    const tail = reader.readBytes({ start, end: bytes }, tailWindow);
    // From the last line to the first, which is torn unless the window holds the whole file.
    const lastLines = splitLines(tail, start)
      .slice(isWhole ? 0 : 1)
      .toReversed();
    const end = scan(lastLines, ({ at, cwd }) => at !== undefined && cwd !== undefined);
    const beginning = isWhole ? scanHead(tail) : readHead(reader);
    if (!beginning.isTranscript && !end.isTranscript) return {};
    const name = basename(path, '.jsonl');
    const { prompt } = beginning;
    // The last title of a kind is the valid one.
    const titles = { ...beginning.titles, ...end.titles };
    const overview = {
      sessionId: SESSION_ID.test(name) ? name : (end.sessionId ?? beginning.sessionId ?? name),
      path,
      bytes,
      bornAt,
      changedAt,
      startedAt: beginning.at,
      lastActivityAt: end.at ?? beginning.at ?? changedAt,
      folders: [...new Set([beginning.cwd, end.cwd].filter((folder) => folder !== undefined))],
      firstPrompt: prompt?.fields.uuid,
      model: findModel(lastLines),
      version: prompt?.fields.version,
    };
    const title = TITLE_KINDS.map((kind) => titles[kind]).find((each) => each !== undefined);
    return { overview, title: title ?? beginning.promptTitle };
  });
}

function readTitleAt(path: string, { start, end }: Place): string | undefined {
  const bytes = withReader(path, (reader) => reader.readBytes({ start, end }));
  const value = parseJson(bytes.toString('utf8'));
  if (typeof value === 'string') return value;
  const line = parseLine({ number: 0, start, end, bytes });
  if (line?.kind === 'user') return describePrompt(line);
  return line?.kind === 'other' ? readTitle(line) : undefined;
}

/** Most titles are a string of their line, which is faster to read than the line. */
function placeTitle(text: string, { start, bytes }: EndLine): Title {
  const json = Buffer.from(JSON.stringify(text));
  const at = bytes.indexOf(json);
  const place = at < 0 ? { start, end: start + bytes.length } : { start: start + at, end: start + at + json.length };
  return { text, place };
}

function describePrompt(line: UserLine): string {
  const { content, media } = parsePromptText(line);
  return content || media.map((block) => `[${describeMedia(block)}]`).join(' ');
}

/** Whether there are messages after a byte of a transcript. Lines for Claude Code's own bookkeeping do not count. */
export function hasMessagesAfter(path: string, offset: number): boolean {
  return withReader(path, (reader) => {
    reader.moveToLineFrom(offset);
    for (const line of parseLines(reader.lines()))
      if (line.kind === 'assistant' || (line.kind === 'user' && !line.fields.isMeta)) return true;
    return false;
  });
}

/** The first time in a transcript from a byte on. */
export function readTimeFrom(path: string, offset: number): number | undefined {
  return withReader(path, (reader) => {
    reader.moveToLineFrom(offset);
    for (const line of parseLines(reader.lines())) {
      const at = line.kind === 'unreadable' ? undefined : line.at;
      if (at !== undefined) return at;
    }
    return undefined;
  });
}

/** The prompt whose line begins at a byte of a transcript, and when it was given. Undefined if there is none. */
export function readPromptAt(
  path: string,
  offset: number,
): { readonly text: string; readonly at: number | undefined } | undefined {
  return withReader(path, (reader) => {
    reader.moveToLineFrom(offset);
    const [line] = parseLines(reader.lines());
    return line?.kind === 'user' ? { text: describePrompt(line), at: line.at } : undefined;
  });
}

/** Bytes of a file. */
interface Place {
  readonly start: number;
  readonly end: number;
}

/** The title of a session, and where it is: a JSON string, or the line that it is read from. */
interface Title {
  readonly text: string;
  readonly place: Place;
}

/** A line of one end of a file, and its first byte. */
interface EndLine {
  readonly start: number;
  readonly bytes: Buffer;
}

/** What has been found so far in one end of a file. */
interface Findings {
  /** Whether there was a line that only transcripts have. */
  isTranscript: boolean;
  at?: number | undefined;
  cwd?: string | undefined;
  sessionId?: string | undefined;
  prompt?: UserLine;
  promptTitle?: Title;
  titles: { [kind in TitleKind]?: Title | undefined };
}

/** Usually the first few lines are enough. If one of them is long, as much is read as the window holds. */
function readHead(reader: TranscriptReader): Findings {
  const found = scanHead(reader.readBytes({ start: 0, end: FIRST_BYTES }, headWindow));
  return isHeadComplete(found) ? found : scanHead(reader.readBytes({ start: 0, end: WINDOW_BYTES }, headWindow));
}

/** The last line of a window is torn. */
function scanHead(head: Buffer): Findings {
  return scan(splitLines(head, 0).slice(0, -1), isHeadComplete);
}

function isHeadComplete({ at, cwd, prompt }: Findings): boolean {
  return at !== undefined && cwd !== undefined && prompt !== undefined;
}

/** Splits a part of a file that begins at the byte `start`. */
function splitLines(window: Buffer, start: number): EndLine[] {
  const lines: EndLine[] = [];
  let from = 0;
  for (let to = window.indexOf(NEWLINE); to >= 0; to = window.indexOf(NEWLINE, from)) {
    lines.push({ start: start + from, bytes: window.subarray(from, to) });
    from = to + 1;
  }
  return [...lines, { start: start + from, bytes: window.subarray(from) }];
}

function scan(lines: readonly EndLine[], isEnough: (found: Findings) => boolean): Findings {
  const found: Findings = { isTranscript: false, titles: {} };
  for (const line of lines) scanLine(line, isEnough(found), found);
  return found;
}

const BOOKKEEPING =
  /^\{"type":"(?:mode|permission-mode|atis-latch|file-history-|api-request|last-prompt|tools-used|cost-state)/;
const TITLE = /^\{"type":"(custom-title|ai-title|summary)"/;
const TYPE_BYTES = 48;
const LETTER_T = 't'.charCodeAt(0);

/**
 * Takes from a line what has not been found yet. Since thousands of files are scanned, only the few lines that can say
 * something new are parsed; the others are recognized by their first bytes. (Measured: this takes about as long as reading
 * the bytes; parsing every line takes fifteen times as long.)
 */
function scanLine(source: EndLine, isEnough: boolean, found: Findings): void {
  const { start, bytes } = source;
  const startsWithType = bytes['{"'.length] === LETTER_T;
  if (isEnough && !startsWithType) return;
  const head = startsWithType ? bytes.toString('latin1', 0, TYPE_BYTES) : '';
  const titleKind = TITLE.exec(head)?.[1] as TitleKind | undefined;
  const isBookkeeping = BOOKKEEPING.test(head);
  found.isTranscript ||= isBookkeeping;
  if (!titleKind && (isEnough || isBookkeeping)) return;
  const end = start + bytes.length;
  const line = parseLine({ number: 0, start, end, bytes });
  if (!line || line.kind === 'unreadable' || line.kind === 'request') return;
  if (titleKind && line.kind === 'other') {
    const text = readTitle(line);
    found.titles[titleKind] ??= text === undefined ? undefined : placeTitle(text, source);
  }
  found.at ??= line.at;
  found.cwd ??= line.fields.cwd;
  found.sessionId ??= line.fields.sessionId;
  found.isTranscript ||= found.sessionId !== undefined || line.kind === 'user' || line.kind === 'assistant';
  if (found.prompt || line.kind !== 'user' || classifyLine(line).role !== 'prompt') return;
  found.prompt = line;
  found.promptTitle = placeTitle(describePrompt(line), source);
}

const ANSWER_HEAD_BYTES = 800;

function findModel(lastLines: readonly EndLine[]): string | undefined {
  for (const { bytes } of lastLines) {
    const head = bytes.toString('latin1', 0, ANSWER_HEAD_BYTES);
    const [, model] = (head.includes('"role":"assistant"') && /"model":"([^"]+)"/.exec(head)) || [];
    if (model !== undefined && model !== '<synthetic>') return model;
  }
  return undefined;
}
