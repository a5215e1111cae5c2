import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deriveTraceId } from '../../src/observations/build/ids.js';
import { Exporter } from '../support/exporter.js';
import { assistant, at, jsonLines, SESSION, text, toolResult, toolUse, user } from '../support/lines.js';
import { describeTraces } from '../support/traces.js';

/** What one process writes next, at random: how its prompt came about, and how many tools it uses. */
const turn = fc.record({
  kind: fc.constantFrom('plain', 'retracted first', 'queued with another', 'killed after the call'),
  calls: fc.nat(2),
  isRetried: fc.boolean(),
  hasEnd: fc.boolean(),
});
const process = fc.record({ turns: fc.array(turn, { minLength: 1, maxLength: 3 }), resumesOther: fc.boolean() });
const processes = fc.array(process, { minLength: 2, maxLength: 3 });
/** Which process writes next, and whether the session is exported after it. */
const steps = fc.array(fc.record({ process: fc.nat(2), isExported: fc.boolean() }), { maxLength: 60 });
type Process = typeof process extends fc.Arbitrary<infer T> ? T : never;

interface Written {
  readonly lines: object[];
  /** The last line that another process can take for the end of the conversation, and the call in it. */
  leaf: { readonly uuid: string; readonly call?: string };
  /** The prompt that each response must be found below, and what each call must have returned. */
  readonly promptOf: Map<string, string>;
  readonly resultOf: Map<string, string>;
}

/** The lines of a process, one after the other, each a child of the one before. */
function* write(name: string, { turns, resumesOther }: Process, written: Written): Generator<object, void, undefined> {
  const { promptOf, resultOf } = written;
  let last = resumesOther ? written.leaf.uuid : 'root';
  if (resumesOther && written.leaf.call) {
    const content = [toolResult(written.leaf.call, 'interrupted', { is_error: true })];
    const made = { uuid: `${name}-made-up`, parentUuid: last, promptId: `${name}0-prompt-id` };
    resultOf.set(written.leaf.call, resultOf.get(written.leaf.call) || 'interrupted');
    yield user(content, made);
    last = made.uuid;
  }
  for (const [index, { kind, calls, isRetried, hasEnd }] of turns.entries()) {
    const id = (what: string) => `${name}${index}-${what}`;
    const line = (what: string, build: (more: object) => object, parentUuid = last): object => {
      last = id(what);
      return build({ uuid: last, parentUuid });
    };
    const prompt = (what: string, parentUuid = last) =>
      line(
        what,
        (more) => user(`prompt ${id(what)}`, { ...more, promptId: id(`${what}-id`), promptSource: 'typed' }),
        parentUuid,
      );
    const before = last;
    if (kind === 'retracted first') yield prompt('retracted');
    yield prompt('prompt', before);
    if (kind === 'queued with another') yield prompt('second');
    if (isRetried) yield line('retry', (more) => ({ type: 'system', subtype: 'api_error', ...more }));
    const promptId = id(kind === 'queued with another' ? 'second-id' : 'prompt-id');
    for (let call = 0; call < calls; call += 1) {
      const [message, tool] = [id(`m${call}`), id(`t${call}`)];
      promptOf.set(message, id('prompt'));
      const isKilled = kind === 'killed after the call' && call === calls - 1;
      resultOf.set(tool, isKilled ? '' : `result of ${tool}`);
      written.leaf = { uuid: id(`a${call}`), call: tool };
      const more = { message: { stop_reason: 'tool_use' } };
      yield line(`a${call}`, (rest) => merge(assistant(message, [text('so'), toolUse(tool)], rest), more));
      if (!isKilled)
        yield line(`r${call}`, (rest) => user([toolResult(tool, `result of ${tool}`)], { ...rest, promptId }));
    }
    if (kind === 'killed after the call' && calls > 0) continue;
    promptOf.set(id('m'), id('prompt'));
    written.leaf = { uuid: id('a') };
    yield line('a', (rest) =>
      merge(assistant(id('m'), `answer ${id('m')}`, rest), { message: { stop_reason: 'end_turn' } }),
    );
    if (hasEnd) yield line('end', (rest) => ({ type: 'system', subtype: 'stop_hook_summary', ...rest }));
  }
}

function merge(line: object, { message }: { message: object }): object {
  return { ...line, message: { ...(line as { message: object }).message, ...message } };
}

describe('turns of several processes whose lines interleave at random', () => {
  test('are the same, each response below its own prompt, whenever they are exported', async () => {
    await fc.assert(
      fc.asyncProperty(processes, steps, async (all, order) => {
        const written: Written = { lines: [], leaf: { uuid: 'root' }, promptOf: new Map(), resultOf: new Map() };
        const [live, once] = [await Exporter.open(), await Exporter.open()];
        const paths = [live, once].map(({ folder }) => join(folder, `${SESSION}.jsonl`)) as [string, string];
        try {
          const writers = all.map((each, place) => write('abc'[place] ?? '', each, written));
          const append = async (process: number, isExported: boolean) => {
            const { value } = writers[process % writers.length]?.next() ?? {};
            if (!value) return false;
            const lines = jsonLines([{ ...value, timestamp: at(written.lines.push(value)) }]);
            for (const path of paths) appendFileSync(path, lines);
            if (isExported) expect(await live.export(paths[0])).toMatchObject({ failure: undefined });
            return true;
          };
          for (const { process, isExported } of order) await append(process, isExported);
          for (const [process] of writers.entries()) while (await append(process, false));
          await live.export(paths[0]);
          await once.export(paths[1]);
          const { observations } = once.server;
          expect(describeTraces(live.server.observations)).toEqual(describeTraces(observations));
          const traces = observations.flatMap(({ traceId, metadata: { message_id } }) =>
            typeof message_id === 'string' ? [[message_id, traceId] as const] : [],
          );
          expect(new Map(traces)).toEqual(
            new Map([...written.promptOf].map(([id, prompt]) => [id, deriveTraceId(prompt)])),
          );
          const results = observations.flatMap(({ output, metadata: { tool_id } }) =>
            typeof tool_id === 'string' ? [[tool_id, output ?? ''] as const] : [],
          );
          expect(new Map<string, unknown>(results)).toEqual(written.resultOf);
        } finally {
          await live.close();
          await once.close();
        }
      }),
      { numRuns: 60 },
    );
  });
});
