import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeSpan } from '../src/langfuse/otlp/span.js';
import { buildTurn } from '../src/observations/build/turn.js';
import { Exporter } from './support/exporter.js';
import type { OtlpSpan, StoredObservation } from './support/langfuse-server.js';
import { stored } from './support/langfuse-server.js';
import { groupTurns } from './support/lines.js';
import { agentFilesBelow, recording, recordings, transcriptsOf } from './support/recording.js';
import { OPTIONS } from './support/traces.js';

const transcripts = recordings().flatMap((one) => transcriptsOf(one).map((path) => ({ path, lines: linesIn(path) })));
const withAgents = ['i-agentbg2', 'p-agent2', 'p-agentfgnest', 'p-wf', 'p-forkskill', 'v2.0.76-oldtask'];

function linesIn(path: string): string[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

const PARTS = 10_000;

/** What may happen to a file, at a place that is given in parts of its length. */
const damage = fc.record({
  kind: fc.constantFrom('drop', 'repeat', 'move', 'tear', 'garble', 'retype', 'end here'),
  place: fc.nat(PARTS - 1),
  other: fc.nat(PARTS - 1),
  value: fc.jsonValue(),
});
type Damage = typeof damage extends fc.Arbitrary<infer T> ? T : never;

function damaged(lines: readonly string[], damages: readonly Damage[]): string[] {
  return damages.reduce<string[]>(
    (all, { kind, place, other, value }) => {
      const from = partOf(all.length, place);
      const to = partOf(all.length, other);
      const line = all[from] ?? '';
      switch (kind) {
        case 'drop':
          return all.toSpliced(from, 1);
        case 'repeat':
          return all.toSpliced(to, 0, line);
        case 'move':
          return all.toSpliced(from, 1).toSpliced(to, 0, line);
        case 'tear':
          return all.toSpliced(from, 1, line.slice(0, partOf(line.length, other)));
        case 'garble':
          return all.toSpliced(from, 1, line.replaceAll(line[partOf(line.length, other)] ?? '"', '\uD800'));
        case 'retype':
          return all.toSpliced(from, 1, retyped(line, other, value));
        case 'end here':
          return all.slice(0, from + 1);
      }
      return all;
    },
    [...lines],
  );
}

function partOf(length: number, part: number): number {
  return Math.floor((part / PARTS) * length);
}

/** Replaces one of the fields of a line, at any depth. */
function retyped(line: string, part: number, value: unknown): string {
  try {
    const fields: [Record<string, unknown>, string][] = [];
    const parsed = JSON.parse(line, function collect(this: Record<string, unknown>, key, node) {
      fields.push([this, key]);
      return node;
    });
    const [holder, key] = fields[partOf(fields.length - 1, part)] ?? [];
    if (holder && key) holder[key] = value;
    return JSON.stringify(parsed);
  } catch {
    return line;
  }
}

const COUNTS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens'] as const;
interface Counted {
  readonly message?: { readonly id?: unknown; readonly usage?: { readonly [kind: string]: unknown } };
  readonly modelUsage?: { readonly [model: string]: { readonly [kind: string]: unknown } | null };
}

/** Sums up the largest counts that the lines have for each message. Each line without an id counts as a message. */
function tokensIn(lines: readonly string[]): number {
  const largest = new Map<string, number>();
  for (const [place, line] of lines.entries()) {
    for (const { message } of objectsIn(line)) {
      for (const kind of COUNTS) {
        const count = message?.usage?.[kind];
        const key = `${typeof message?.id === 'string' ? message.id : place} ${kind}`;
        if (typeof count === 'number') largest.set(key, Math.max(largest.get(key) ?? 0, count));
      }
    }
  }
  return [...largest.values()].reduce((sum, count) => sum + count, 0);
}

const ACCOUNT_COUNTS = ['inputTokens', 'outputTokens', 'cacheReadInputTokens'] as const;

/** Sums up what the accounts say of all models. */
function tokensInAccounts(lines: readonly string[]): number {
  const models = lines.flatMap((line) => objectsIn(line)).flatMap(({ modelUsage }) => Object.values(modelUsage ?? {}));
  const counts = models.flatMap((model) => ACCOUNT_COUNTS.map((kind) => model?.[kind]));
  return counts.reduce<number>((sum, count) => sum + (typeof count === 'number' && count > 0 ? count : 0), 0);
}

/** Finds the JSON objects in a line, also after the rest of a torn line. */
function objectsIn(line: string): Counted[] {
  const starts = [0, ...[...line.matchAll(/\{"(?:parentUuid|type|message|sessionId)":/g)].map(({ index }) => index)];
  return starts.flatMap((start) => {
    try {
      return [JSON.parse(line.slice(start)) as Counted];
    } catch {
      return [];
    }
  });
}

function expectSound(observations: readonly StoredObservation[], session: string, lines: readonly string[]): void {
  const spans = new Set(observations.map(({ traceId, id }) => `${traceId}/${id}`));
  expect(spans.size).toBe(observations.length);
  const orphans = observations.filter(({ traceId, parentId }) => parentId && !spans.has(`${traceId}/${parentId}`));
  expect(orphans).toEqual([]);
  const roots = observations.filter(({ parentId }) => parentId === undefined).map(({ traceId }) => traceId);
  expect(roots.toSorted()).toEqual([...new Set(observations.map(({ traceId }) => traceId))].toSorted());
  for (const field of ['message_id', 'tool_id']) {
    const ids = observations.map(({ metadata }) => metadata[field]).filter((id) => id !== undefined);
    expect(ids).toEqual([...new Set(ids)]);
  }
  expect(observations.filter(({ trace }) => trace.sessionId !== session)).toEqual([]);
  expect(observations.filter(({ startTime, endTime }) => !(endTime >= startTime))).toEqual([]);
  const tokensOf = (some: readonly StoredObservation[]) =>
    some.reduce(
      (sum, { usage = {} }) => sum + (usage.input ?? 0) + (usage.output ?? 0) + (usage.cache_read_input_tokens ?? 0),
      0,
    );
  // The tokens of a compaction are in no message, but in Claude Code's account.
  const compactions = observations.filter(({ type, name }) => type === 'generation' && name === 'compaction');
  const others = observations.filter((observation) => !compactions.includes(observation));
  expect(tokensOf(others)).toBeLessThanOrEqual(tokensIn(lines));
  expect(tokensOf(compactions)).toBeLessThanOrEqual(tokensInAccounts(lines));
  expect(observations.filter((observation) => !JSON.stringify(observation).isWellFormed())).toEqual([]);
}

describe('a transcript that is damaged at random', () => {
  test('becomes sound observations, the same ones each time', () => {
    let checked = 0;
    fc.assert(
      fc.property(fc.constantFrom(...transcripts), fc.array(damage, { maxLength: 12 }), ({ path, lines }, damages) => {
        const session = basename(path, '.jsonl');
        const contents = damaged(lines, damages);
        const spans = () => {
          const own = groupTurns(contents, session).all.filter(({ copied }) => !copied);
          // A turn that goes on after the next prompt ends again.
          return [...new Map(own.map((turn) => [turn.key, turn])).values()].flatMap((turn) => {
            const { children, root } = buildTurn(turn, { ...OPTIONS, sessionId: session });
            return [...children, root].map((each) => encodeSpan(each));
          });
        };
        const first = spans();
        checked += first.length;
        expect(spans()).toEqual(first);
        expectSound(
          first.map((span) => stored(JSON.parse(span) as OtlpSpan)),
          session,
          contents,
        );
      }),
      { numRuns: 400 },
    );
    expect(checked).toBeGreaterThan(400);
  });

  test('and has damaged subagents becomes sound observations, each sent once', async () => {
    let checked = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...withAgents),
        fc.array(damage, { maxLength: 6 }),
        fc.array(damage, { maxLength: 6 }),
        async (name, damages, agentDamages) => {
          const exporter = await Exporter.open();
          try {
            const [source = ''] = transcriptsOf(recording(name));
            const session = basename(source, '.jsonl');
            const folder = join(exporter.folder, 'project');
            cpSync(dirname(source), folder, { recursive: true });
            mkdirSync(folder, { recursive: true });
            const contents = damaged(linesIn(source), damages);
            const path = join(folder, basename(source));
            writeFileSync(path, `${contents.join('\n')}\n`);
            const agents = agentFilesBelow(folder);
            const agentContents = agents.map((file) => damaged(linesIn(file), agentDamages));
            for (const [place, file] of agents.entries()) writeFileSync(file, `${agentContents[place]?.join('\n')}\n`);
            expect(await exporter.export(path)).toMatchObject({ failure: undefined });
            const { observations, lost } = exporter.server;
            checked += observations.length;
            expectSound(observations, session, [...contents, ...agentContents.flat()]);
            expect(lost).toBe(0);
            // A line that comes after the next prompt changes a turn that has been sent.
            const most = damages.some(({ kind }) => kind === 'move' || kind === 'repeat') ? 2 : 1;
            expect(observations.filter((each) => exporter.server.timesSent(each) > most)).toEqual([]);
          } finally {
            await exporter.close();
          }
        },
      ),
      { numRuns: 60 },
    );
    expect(checked).toBeGreaterThan(60);
  });
});
