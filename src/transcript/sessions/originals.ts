import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
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

  #read(sessionId: string): ReadonlySet<string> | undefined {
    const path = attempt(() => locateTranscript(join(this.#folder, `${sessionId}.jsonl`), sessionId));
    return path === undefined ? undefined : attempt(() => readIds(path));
  }
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
