import { appendFileSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** A recorded session of the real Claude Code: the transcripts that it wrote, and the hooks that it called. */
export interface Recording {
  readonly name: string;
  readonly folder: string;
}

const RECORDINGS = fileURLToPath(new URL('../../fixtures/recorded/', import.meta.url));
const RECORDED_HOME = '/home/dev';

export function recordings(): Recording[] {
  return readdirSync(RECORDINGS).map((name) => ({ name, folder: join(RECORDINGS, name) }));
}

export function recording(name: string): Recording {
  return { name, folder: join(RECORDINGS, name) };
}

/** The transcripts of a recording, oldest first. */
export function transcriptsOf({ folder }: Recording): string[] {
  const files = readdirSync(join(folder, 'projects'), { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|[/\\])[0-9a-f-]{36}\.jsonl$/.test(file))
    .map((file) => join(folder, 'projects', file));
  const firstTime = (file: string) => /"timestamp":"([^"]+)"/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
  return files.toSorted((a, b) => firstTime(a).localeCompare(firstTime(b)));
}

interface HookCall {
  readonly event: string;
  readonly payload: { readonly [field: string]: unknown };
  /** The message id of the answer that is not in the transcript yet when the hook starts. */
  readonly awaited: string | undefined;
}

interface Growing {
  readonly path: string;
  readonly lines: { readonly text: string; readonly at: number }[];
  written: number;
}

interface Call {
  readonly event: string;
  readonly at: number;
  readonly payload: Record<string, unknown>;
  readonly held: { readonly file: Growing; readonly index: number } | undefined;
}

const EVENTS = ['SessionStart', 'Stop', 'StopFailure', 'SessionEnd'];
/** How long after a hook Claude Code goes on writing what belongs to its event. */
const AFTERMATH_MS = 1_500;

/**
 * Plays a recording in a home: the transcripts grow and the hooks are called in the recorded order. As in the real CLI,
 * the answer's last line reaches the file only `flushMs` after a Stop hook has started.
 */
export async function play(
  { folder }: Recording,
  home: string,
  call: (hook: HookCall) => Promise<void>,
  flushMs = 60,
): Promise<void> {
  const files = growingFiles(join(folder, 'projects'), join(home, '.claude', 'projects'));
  const calls = hookCalls(folder, home, files);
  for (const [place, { event, at, payload, held }] of calls.entries()) {
    const later = calls.slice(place + 1);
    for (const file of files) growTo(file, Math.min(dueAt(file, at), heldAt(file, calls.slice(place))));
    const flushed = sleep(flushMs).then(() => {
      for (const file of files) growTo(file, Math.min(dueAt(file, at), heldAt(file, later)));
    });
    await call({ event, payload, awaited: held && messageId(held.file.lines[held.index]?.text) });
    await flushed;
    const until = Math.min(at + AFTERMATH_MS, (later[0]?.at ?? Number.POSITIVE_INFINITY) - 1);
    for (const file of files) growTo(file, Math.min(dueAt(file, until), heldAt(file, later)));
  }
  for (const file of files) growTo(file, file.lines.length);
}

/** Lets the transcripts of a recording grow in a home, line by line in the order of their times. Yields after each line. */
export function* grow(
  { folder }: Recording,
  home: string,
): Generator<{ readonly path: string; readonly text: string }, void, undefined> {
  const files = growingFiles(join(folder, 'projects'), join(home, '.claude', 'projects'));
  const lines = files.flatMap(({ path, lines }) => lines.map((line) => ({ path, ...line })));
  for (const { path, text } of lines.toSorted((a, b) => a.at - b.at)) {
    mkdirSync(dirname(path), { recursive: true });
    appendFileSync(path, `${text}\n`);
    yield { path, text };
  }
}

function growingFiles(from: string, to: string): Growing[] {
  const growing: Growing[] = [];
  for (const name of readdirSync(from, { recursive: true, encoding: 'utf8' })) {
    const source = join(from, name);
    const path = join(to, relative(from, source));
    if (statSync(source).isDirectory()) continue;
    mkdirSync(dirname(path), { recursive: true });
    if (!name.endsWith('.jsonl')) {
      cpSync(source, path);
      continue;
    }
    let at = 0;
    const texts = readFileSync(source, 'utf8')
      .split('\n')
      .filter((text) => text !== '');
    const lines = texts.map((text) => {
      const { timestamp } = JSON.parse(text) as { timestamp?: string };
      at = Math.max(at, timestamp === undefined ? 0 : Date.parse(timestamp));
      return { text, at };
    });
    growing.push({ path, lines, written: 0 });
  }
  return growing;
}

function hookCalls(folder: string, home: string, files: readonly Growing[]): Call[] {
  const answersSeen = new Map<Growing, number>();
  return readFileSync(join(folder, 'hooks.log'), 'utf8')
    .split('\n')
    .filter((text) => text !== '')
    .map(
      (text) =>
        JSON.parse(text.replaceAll(RECORDED_HOME, JSON.stringify(home).slice(1, -1))) as {
          event: string;
          wall_ms: number;
          stdin: Record<string, unknown>;
        },
    )
    .filter(({ event }) => EVENTS.includes(event))
    .toSorted((a, b) => a.wall_ms - b.wall_ms)
    .map(({ event, wall_ms: at, stdin: payload }) => {
      const file = files.find(({ path }) => path === normalize(String(payload.transcript_path)));
      const answer = payload.last_assistant_message;
      if (!file || typeof answer !== 'string' || !event.startsWith('Stop'))
        return { event, at, payload, held: undefined };
      const from = (answersSeen.get(file) ?? -1) + 1;
      const index = file.lines.findLastIndex(
        (line, place) =>
          place >= from && line.at <= at && isHeldBack(line.text) && lastText(line.text) === answer.trim(),
      );
      if (index < 0) return { event, at, payload, held: undefined };
      answersSeen.set(file, index);
      return { event, at, payload, held: { file, index } };
    });
}

/** Up to 2.1.90 the answer is already in the file when Stop is called. */
function isHeldBack(text: string): boolean {
  const [, major = 0, minor = 0, patch = 0] = /"version":"(\d+)\.(\d+)\.(\d+)"/.exec(text)?.map(Number) ?? [];
  return major > 2 || (major === 2 && (minor > 1 || (minor === 1 && patch > 90)));
}

interface AssistantLine {
  readonly type?: string;
  readonly message?: {
    readonly id?: string;
    readonly content?: readonly { readonly type: string; readonly text?: string }[];
  };
}

function lastText(text: string): string | undefined {
  const { type, message } = JSON.parse(text) as AssistantLine;
  if (type !== 'assistant' || !Array.isArray(message?.content)) return undefined;
  return message.content.findLast((block: { type: string }) => block.type === 'text')?.text?.trim();
}

function messageId(text = '{}'): string | undefined {
  return (JSON.parse(text) as AssistantLine).message?.id;
}

function dueAt(file: Growing, at: number): number {
  const next = file.lines.findIndex((line, place) => place >= file.written && line.at > at);
  return next < 0 ? file.lines.length : next;
}

function heldAt(file: Growing, calls: readonly Call[]): number {
  const held = calls.find((call) => call.held?.file === file && call.held.index >= file.written);
  return held?.held?.index ?? file.lines.length;
}

function growTo(file: Growing, upTo: number): void {
  if (upTo <= file.written) return;
  const text = file.lines.slice(file.written, upTo).map((line) => `${line.text}\n`);
  mkdirSync(dirname(file.path), { recursive: true });
  appendFileSync(file.path, text.join(''));
  file.written = upTo;
}

/** Returns the transcripts of subagents in a folder, at any depth. */
export function agentFilesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => /(^|[/\\])agent-[^/\\]+\.jsonl$/.test(file))
    .map((file) => join(folder, file));
}
