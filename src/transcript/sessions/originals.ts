import { lstatSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { identifyFile } from '../../shared/file-identity.js';
import { listAllLines, withReader } from '../file/lines.js';
import { locateTranscript } from './related-sessions.js';

/** The uuids of lines, and the ids of responses, calls and workflows. */
const ID = /"(?:uuid|id|runId)":"([^"]{1,100})"/g;

/** The transcripts of the sessions that a transcript's lines name. */
export class Originals {
  readonly #folder: string;
  readonly #ids = new Map<string, ReadonlySet<string> | undefined>();

  constructor(path: string) {
    this.#folder = dirname(path);
  }

  /** Whether a session's transcript has a line, a response, a call or a workflow with an id. Undefined if there is no transcript. */
  holds(sessionId: string, id: string | undefined): boolean | undefined {
    if (!this.#ids.has(sessionId)) this.#ids.set(sessionId, this.#read(sessionId));
    const ids = this.#ids.get(sessionId);
    return ids && (id === undefined ? ids.size > 0 : ids.has(id));
  }

  /** The sessions that were asked for. */
  get asked(): string[] {
    return [...this.#ids.keys()];
  }

  /** What differs if one of these sessions' transcripts has been changed, replaced, deleted or moved. */
  identify(sessionIds: readonly string[]): string {
    return sessionIds.map((id) => identifyTranscript(this.#locate(id))).join(' ');
  }

  #read(sessionId: string): ReadonlySet<string> | undefined {
    const path = this.#locate(sessionId);
    return path === undefined ? undefined : attempt(() => readIds(path));
  }

  #locate(sessionId: string): string | undefined {
    return attempt(() => locateTranscript(join(this.#folder, `${sessionId}.jsonl`), sessionId));
  }
}

function identifyTranscript(path: string | undefined): string {
  const status = path === undefined ? undefined : attempt(() => lstatSync(path, { bigint: true }));
  return status ? identifyFile(status) : 'none';
}

/** Parsing the lines would take many times as long. An id in what was said does no harm. */
function readIds(path: string): Set<string> {
  return withReader(path, (reader) => {
    const ids = new Set<string>();
    for (const { bytes } of listAllLines(reader))
      for (const [, id = ''] of bytes.toString('latin1').matchAll(ID)) ids.add(id);
    return ids;
  });
}
