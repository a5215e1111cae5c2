import { cpSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { selectSessions } from '../src/cli/session-selection.js';
import { backfill } from '../src/commands/backfill/backfill.js';
import { readRequest } from '../src/commands/backfill/request.js';
import { countTokens } from '../src/costs/cost-book.js';
import { readAllUsage } from '../src/costs/read-usage.js';
import { openLog } from '../src/shared/log.js';
import { StateStore } from '../src/state/store.js';
import { Exporter } from './support/exporter.js';
import { jsonLines } from './support/lines.js';
import { recordings } from './support/recording.js';

/**
 * What transcripts hold is sent: each response and each call once, and the tokens are those that `cost` counts, session by session.
 * Only then nothing of a new version of Claude Code is lost in silence.
 */

const SETS = [
  ...recordings().map(({ name, folder }) => ({ name, folder: join(folder, 'projects'), project: '' })),
  { name: 'handmade', folder: fileURLToPath(new URL('../fixtures/handmade', import.meta.url)), project: 'p' },
];
/** Nobody works in these sessions any more. */
const LONG_AGO = new Date(Date.now() - 3_600_000);
type Source = (typeof SETS)[number];
/** Their agents go on after `/clear` and `/branch`. */
const OUTLIVING = ['q-branchbg', 'q-clearbg'];
const RUNS = Number(process.env.CONSERVATION_RUNS ?? 120);
const TIMEOUT = 1_000 * RUNS;
/** The same cases each time, so that a failure is one of the change. Another seed looks for new ones. */
const seed = Number(process.env.CONSERVATION_SEED ?? 1);

/** What happens to the lines of a file, at places that are given in parts of its length. */
const change = fc.record({
  kind: fc.constantFrom(
    'drop',
    'double',
    'move',
    'cut the end',
    'cut the beginning',
    'new message id',
    'new uuid',
    'no parent',
    'no prompt id',
  ),
  file: fc.nat(9_999),
  from: fc.nat(9_999),
  to: fc.nat(9_999),
});
type Change = typeof change extends fc.Arbitrary<infer T> ? T : never;
type Files = Map<string, string[]>;

function readFiles(folder: string): Files {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.jsonl'));
  return new Map(names.toSorted().map((name) => [name, linesOf(readFileSync(join(folder, name), 'utf8'))]));
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}

function changed(files: Files, changes: readonly Change[]): Files {
  let all = new Map(files);
  const names = [...all].flatMap(([name, lines]) => (lines.length > 0 ? [name] : []));
  for (const { kind, file, from, to } of changes) {
    const name = names[file % names.length] ?? '';
    const lines = all.get(name) ?? [];
    const id = ID_KINDS[kind]?.exec(lines[placeIn(lines, from)] ?? '')?.[1];
    // A fork's copy has the same ids, and so has what names them.
    if (id !== undefined) all = renamed(all, id, `new-${to}`);
    else all.set(name, changedLines(lines, kind, placeIn(lines, from), placeIn(lines, to)));
  }
  return all;
}

const ID_KINDS: { readonly [kind: string]: RegExp } = {
  'new message id': /"id":"(msg_[^"]+)"/,
  'new uuid': /"uuid":"([^"]+)"/,
};

function renamed(files: Files, from: string, to: string): Files {
  const rename = (line: string) => line.replaceAll(`"${from}"`, `"${to}"`);
  return new Map([...files].map(([name, lines]) => [name, lines.map(rename)]));
}

function placeIn({ length }: readonly string[], part: number): number {
  return Math.floor((part / 10_000) * length);
}

function changedLines(lines: readonly string[], kind: Change['kind'], from: number, to: number): string[] {
  const line = lines[from] ?? '';
  const edited = (edit: (fields: Record<string, unknown>) => object) =>
    lines.toSpliced(from, 1, JSON.stringify(edit(JSON.parse(line))));
  switch (kind) {
    case 'drop':
      return lines.length > 1 ? lines.toSpliced(from, 1) : [...lines];
    case 'double':
      return lines.toSpliced(to, 0, line);
    case 'move':
      return lines.toSpliced(from, 1).toSpliced(to, 0, line);
    case 'cut the end':
      return lines.slice(0, from + 1);
    case 'cut the beginning':
      return lines.slice(from);
    case 'new message id':
    case 'new uuid':
      return [...lines];
    case 'no parent':
      return edited((fields) => ({ ...fields, parentUuid: null }));
    case 'no prompt id':
      return edited(({ promptId: _, ...fields }) => fields);
    default:
      return kind satisfies never;
  }
}

interface Written {
  readonly type?: string;
  readonly isMeta?: boolean;
  readonly isApiErrorMessage?: boolean;
  readonly message?: { readonly id?: string; readonly model?: string; readonly content?: unknown };
}

/** The ids of the responses and calls that the files hold. */
function idsIn(files: Files): { responses: string[]; calls: string[] } {
  const lines = [...files.values()].flat().map((line) => JSON.parse(line) as Written);
  const answers = lines.filter(
    ({ type, isMeta, isApiErrorMessage, message }) =>
      type === 'assistant' && !isMeta && !isApiErrorMessage && message?.model !== '<synthetic>',
  );
  const blocks = answers.flatMap(({ message }) => (Array.isArray(message?.content) ? message.content : []));
  const calls = blocks.filter(({ type }) => CALLS.includes(type)).map(({ id }) => id);
  return { responses: unique(answers.map(({ message }) => message?.id)), calls: unique(calls) };
}

const CALLS = ['tool_use', 'server_tool_use', 'mcp_tool_use'];

function unique(ids: readonly (string | undefined)[]): string[] {
  return [...new Set(ids.filter((id) => id !== undefined))].toSorted();
}

/** A home in which the sessions of a recording are, and a server of its own. */
async function withHome(files: Files, work: (home: Home) => Promise<void>): Promise<void> {
  const exporter = await Exporter.open();
  try {
    const claude = join(exporter.folder, '.claude');
    await work({ exporter, claude, files });
  } finally {
    await exporter.close();
  }
}

interface Home {
  readonly exporter: Exporter;
  readonly claude: string;
  readonly files: Files;
}

function writeFiles({ claude, files }: Home, { folder, project }: Source): void {
  const projects = join(claude, 'projects', project);
  cpSync(folder, projects, { recursive: true });
  for (const [name, lines] of files) {
    writeLines(join(projects, name), lines);
  }
}

async function backfillAll({ exporter, claude, files }: Home): Promise<void> {
  const state = join(exporter.folder, 'state');
  const request = readRequest(['--all', '--include-open', '--concurrency', '1', '--quiet', '--yes']);
  const log = openLog(state, { debug: false });
  const sessions = selectSessions(request.selection, claude);
  // Without any line of a conversation it is no transcript.
  fc.pre(sessions.length === countTranscripts(files));
  const results = await backfill(sessions, {
    request,
    shell: {},
    env: {},
    state: new StateStore(state),
    destination: exporter.destination,
    destinationId: 'x',
    log,
    stop: new AbortController().signal,
    progress: undefined,
  });
  await log.flush();
  expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
}

function countTranscripts(files: Files): number {
  return [...files].filter(([name, lines]) => isTranscript(name) && lines.length > 0).length;
}

function isTranscript(name: string): boolean {
  return /(^|[/\\])[0-9a-f-]{36}\.jsonl$/.test(name);
}

/** What has arrived, and what the files hold. */
function expectAllSent(home: Home, isBySession: boolean): void {
  const { sent, held } = compare(home);
  const shown = (figures: typeof sent) => (isBySession ? figures : { ...figures, tokens: added(figures.tokens) });
  expect(shown(sent)).toEqual(shown(held));
}

function compare({ exporter, claude, files }: Home) {
  const { observations } = exporter.server;
  const sum = (usage: Readonly<Record<string, number>> = {}) => usage.total ?? 0;
  const own = observations.filter(({ metadata }) => metadata.message_id !== undefined);
  const tokens: Record<string, number> = {};
  for (const { trace, usage } of own) tokens[`${trace.sessionId}`] = (tokens[`${trace.sessionId}`] ?? 0) + sum(usage);
  const counted: Record<string, number> = {};
  for (const { sessionId, uses } of readAllUsage(claude, join(exporter.folder, 'costs'))) {
    const total = uses.reduce((all, { used }) => all + countTokens(used), 0);
    if (total > 0) counted[sessionId] = total;
  }
  const idsOf = (key: string) =>
    observations
      .flatMap(({ metadata }) => metadata[key] ?? [])
      .map(String)
      .toSorted();
  const { responses, calls } = idsIn(files);
  return {
    sent: { responses: idsOf('message_id'), calls: idsOf('tool_id'), tokens: withoutZero(tokens) },
    held: { responses, calls, tokens: counted },
  };
}

/** The sum of several sessions: an agent that outlives its session stays below its call, and cost counts it where its file is. */
function added(figures: Record<string, number>): Record<string, number> {
  return { all: Object.values(figures).reduce((sum, value) => sum + value, 0) };
}

function withoutZero(figures: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(figures).filter(([, value]) => value > 0));
}

/** What a hook sends while the sessions grow: after each part of a transcript its SessionEnd comes, or only a live export. */
async function playHooks({ exporter, claude, files }: Home, source: Source, stops: readonly Stop[]): Promise<void> {
  const projects = join(claude, 'projects', source.project);
  cpSync(source.folder, projects, { recursive: true });
  const times = [...files.values()].flatMap((lines) => lines.map(timeOf)).toSorted();
  const exportUntil = async (time: string, isLive: boolean) => {
    for (const [name, lines] of files) {
      const next = lines.findIndex((line) => timeOf(line) > time);
      writeLines(join(projects, name), next < 0 ? lines : lines.slice(0, next));
    }
    for (const name of [...files.keys()].filter(isTranscript)) {
      const path = join(projects, name);
      const report = isLive ? exporter.exportLive(path) : exporter.export(path);
      expect(await report).toMatchObject({ failure: undefined });
    }
  };
  for (const { at, isLive } of stops.toSorted((one, other) => one.at - other.at))
    await exportUntil(times[placeIn(times, at)] ?? '', isLive);
  await exportUntil('9', false);
}

function timeOf(line: string): string {
  return /"timestamp":"([^"]+)"/.exec(line)?.[1] ?? '';
}

function writeLines(path: string, lines: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, jsonLines(lines));
  utimesSync(path, LONG_AGO, LONG_AGO);
}

const stop = fc.record({ at: fc.nat(9_999), isLive: fc.boolean() });
type Stop = typeof stop extends fc.Arbitrary<infer T> ? T : never;

/** Of these, one file alone says that something is a copy: a lost line can make it twice. */
const CHANGEABLE = SETS.filter(({ name }) => !['q-fork', 'v2.0.76-resume'].includes(name));
const changes = fc.array(change, { minLength: 1, maxLength: 6 });

describe('each response, each call and all tokens of the files are sent by a backfill', () => {
  test.each(SETS)('of $name', async (source) => {
    await withHome(readFiles(source.folder), async (home) => {
      writeFiles(home, source);
      await backfillAll(home);
      expectAllSent(home, !OUTLIVING.includes(source.name));
    });
  });

  test(
    'whatever has happened to their lines',
    async () => {
      const property = fc.asyncProperty(fc.constantFrom(...CHANGEABLE), changes, async (source, all) => {
        await withHome(changed(readFiles(source.folder), all), async (home) => {
          writeFiles(home, source);
          await backfillAll(home);
          // If lines of a fork or of its origin are missing, either can have what both had.
          expectAllSent(home, home.files.size === 1);
        });
      });
      await fc.assert(property, { numRuns: RUNS, seed });
    },
    TIMEOUT,
  );
});

describe('each response, each call and all tokens of the files are sent by hooks, and by a backfill after them', () => {
  test(
    'whenever they come, and whatever has happened to the lines',
    async () => {
      const stops = fc.array(stop, { maxLength: 4 });
      // A hook reads on from the last turn. It does not know which responses were far before.
      const near = fc.array(
        change.filter(({ kind }) => kind !== 'double' && kind !== 'move'),
        { maxLength: 6 },
      );
      const property = fc.asyncProperty(fc.constantFrom(...CHANGEABLE), near, stops, async (source, all, some) => {
        await withHome(changed(readFiles(source.folder), all), async (home) => {
          await playHooks(home, source, some);
          // An agent of which no file has the call is left to it.
          await backfillAll(home);
          expectAllSent(home, false);
        });
      });
      await fc.assert(property, { numRuns: RUNS, seed });
    },
    TIMEOUT,
  );
});
