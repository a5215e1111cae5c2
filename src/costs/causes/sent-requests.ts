import { isRecord, parseJson } from '../../shared/json.js';
import { type Line, parseLine, parseProgress } from '../../transcript/file/line.js';
import { listAllLines } from '../../transcript/file/lines.js';
import { type SourceLine, TranscriptReader } from '../../transcript/file/reader.js';
import { ShapeLine } from '../../transcript/file/schema.js';
import type { RequestMessages } from './context.js';
import { estimateTokens, nameDefinitions, OWN_PARTS, type Part } from './parts.js';

interface Delta extends Omit<RequestMessages, 'shape'> {
  readonly shapeHash: string | undefined;
}

/** What the lines of requests say of their messages, while the lines of a transcript pass by. */
export class SentRequests {
  readonly #requests = new Map<string, Delta>();
  /** By the id of a subagent's response that the main thread repeats: who answered, and the call that started it. */
  readonly repeated = new Map<string, { readonly agentId: string; readonly callId: string }>();
  readonly #shapes = new Map<string, readonly Part[] | undefined>();

  /** The lines of a file that is no longer being written. */
  *readLines(path: string): Generator<Line, void, undefined> {
    const reader = TranscriptReader.open(path);
    try {
      for (const source of listAllLines(reader)) {
        const line = parseLine(source);
        if (!line) continue;
        this.#add(line, source.bytes);
        if (line.kind === 'other' && line.type === 'progress') this.#addProgress(source);
        yield line;
      }
    } finally {
      reader.close();
    }
  }

  /** Undefined if there is no valid line for the request. */
  find(id: string | undefined): RequestMessages | undefined {
    const request = id === undefined ? undefined : this.#requests.get(id);
    return request && { ...request, shape: this.#shapes.get(request.shapeHash ?? '') };
  }

  #add(line: Line, bytes: Buffer): void {
    if (line.kind === 'other' && line.type === 'api-request-shape') this.#addShape(line.hash ?? '', bytes);
    if (line.kind !== 'request') return;
    const { id, base, keep = 0, tail, shapeHash } = line.fields;
    if (id === undefined || !Array.isArray(tail)) return;
    this.#requests.set(id, { kept: base === undefined ? undefined : keep, count: keep + tail.length, shapeHash });
  }

  #addProgress(source: SourceLine): void {
    const { answer, agentId = '', callId = '' } = parseProgress(source) ?? {};
    const id = answer?.fields.message?.id;
    if (id !== undefined) this.repeated.set(id, { agentId, callId });
  }

  #addShape(hash: string, bytes: Buffer): void {
    if (!this.#shapes.has(hash)) this.#shapes.set(hash, readShape(bytes));
  }
}

/** Lists what is in front of all messages: the system prompt and the tools. Undefined if the line cannot be read. */
function readShape(bytes: Buffer): readonly Part[] | undefined {
  const { shape } = ShapeLine.parse(parseJson(bytes.toString('utf8')));
  if (!shape) return undefined;
  const parts = new Map<string, number>([[OWN_PARTS.system, estimateTokens(shape.system)]]);
  for (const tool of Array.isArray(shape.tools) ? shape.tools : []) {
    const name = nameDefinitions(isRecord(tool) ? tool.name : undefined);
    parts.set(name, (parts.get(name) ?? 0) + estimateTokens(tool));
  }
  return [...parts].map(([name, tokens]) => ({ name, tokens }));
}
