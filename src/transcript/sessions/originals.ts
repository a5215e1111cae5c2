import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { withReader } from '../file/lines.js';
import { locateTranscript } from './related-sessions.js';

const UUID = /"uuid":"([^"]{1,100})"/g;

/** The transcripts of the sessions that a transcript's lines name. */
export class Originals {
  readonly #folder: string;
  readonly #uuids = new Map<string, ReadonlySet<string> | undefined>();

  constructor(path: string) {
    this.#folder = dirname(path);
  }

  /** Whether a session's transcript has a line. Undefined if there is no such transcript. */
  holds(sessionId: string, uuid: string | undefined): boolean | undefined {
    if (!this.#uuids.has(sessionId)) this.#uuids.set(sessionId, this.#read(sessionId));
    const uuids = this.#uuids.get(sessionId);
    return uuids && (uuid === undefined ? uuids.size > 0 : uuids.has(uuid));
  }

  #read(sessionId: string): ReadonlySet<string> | undefined {
    const path = attempt(() => locateTranscript(join(this.#folder, `${sessionId}.jsonl`), sessionId));
    return path === undefined ? undefined : attempt(() => readUuids(path));
  }
}

/** Parsing the lines would take many times as long. A uuid in what was said does no harm. */
function readUuids(path: string): Set<string> {
  return withReader(path, (reader) => {
    const uuids = new Set<string>();
    for (const { bytes } of reader.lines())
      for (const [, uuid = ''] of bytes.toString('latin1').matchAll(UUID)) uuids.add(uuid);
    return uuids;
  });
}
