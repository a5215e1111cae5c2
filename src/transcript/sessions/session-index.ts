import { lstatSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { replaceOwnFile } from '../../shared/atomic-write.js';
import { attempt } from '../../shared/attempt.js';
import { hashText } from '../../shared/hash.js';
import { memoize } from '../../shared/memoize.js';
import { readOwnFile } from '../../shared/read-file.js';
import { removeOldFiles } from '../../shared/remove-old-files.js';
import { version } from '../../shared/version.js';

/** What the index remembers of a transcript: also how far it was sent, by destination. */
type Section = 'overview' | 'usage' | 'causes' | 'relations' | `state ${string}`;

/** A value, and the state of the files that it was read from. */
interface Remembered {
  readonly key: string;
  readonly json: string;
}

/** What another version has found out is thrown away: it may read transcripts otherwise. */
const HEAD = `cc-langfuse ${version} index 1`;
const COPY_KEPT_MS = 3_600_000;

/**
 * What was found out about the transcripts on disk, so that only those that have changed are read again: places, times, counts,
 * models, branches and folders, but nothing that was said. Each value has its own line, and is parsed only if it is asked for.
 */
export class SessionIndex {
  readonly #path: string;
  readonly #byTranscript: Map<string, Map<string, Remembered>>;
  readonly #unsaved = new Set<string>();
  /** What differs if a transcript is changed or replaced. Throws if it is not there. A command looks once, before it reads. */
  readonly identify = memoize(identifyTranscript);
  #isChanged = false;

  /** What only some commands need is in a file of its own, since all of a file is read. */
  constructor(stateFolder: string, file: 'index' | 'causes' = 'index') {
    this.#path = join(stateFolder, `cc-langfuse_${file}`);
    this.#byTranscript = parseIndex(attempt(() => readOwnFile(this.#path)) ?? '');
  }

  /** Returns what was remembered under this key; undefined if it was another one. */
  read<T>(transcript: string, section: Section, key: string): T | undefined {
    const known = this.#byTranscript.get(transcript)?.get(section);
    return known?.key === key ? (JSON.parse(known.json) as T) : undefined;
  }

  has(transcript: string, section: Section, key: string): boolean {
    return this.#byTranscript.get(transcript)?.get(section)?.key === key;
  }

  /** Returns what was remembered last, whether or not the files have changed since, by transcript. */
  *readAll<T>(section: Section): Generator<[transcript: string, value: T]> {
    for (const [transcript, sections] of this.#byTranscript) {
      const known = sections.get(section);
      if (known) yield [transcript, JSON.parse(known.json) as T];
    }
  }

  /** Returns what it remembers now. */
  write<T extends object>(transcript: string, section: Section, key: string, value: T): T {
    const sections = this.#byTranscript.get(transcript) ?? new Map<string, Remembered>();
    this.#byTranscript.set(transcript, sections.set(section, { key, json: JSON.stringify(value) }));
    this.#isChanged = true;
    return value;
  }

  forget(transcript: string): void {
    if (this.#byTranscript.delete(transcript)) this.#isChanged = true;
  }

  /** Remembers a transcript only as long as this process runs, because something of it could not be read. */
  leaveUnsaved(transcript: string): void {
    this.#unsaved.add(transcript);
  }

  /** Forgets all other transcripts. */
  keepOnly(transcripts: readonly string[]): void {
    const kept = new Set(transcripts);
    for (const transcript of this.#byTranscript.keys()) if (!kept.has(transcript)) this.forget(transcript);
  }

  /** Without a folder for it, or on a full disk, the next command reads everything again. */
  save(): void {
    if (!this.#isChanged) return;
    const saved = [...this.#byTranscript].filter(([transcript]) => !this.#unsaved.has(transcript));
    const body = saved.map(formatTranscript).join('');
    attempt(() => replaceOwnFile(this.#path, `${HEAD} ${hashText(body)}\n${body}`));
    // A process that was killed while it saved has left a copy, and an index is large.
    attempt(() => removeOldFiles(dirname(this.#path), `${basename(this.#path)}.`, COPY_KEPT_MS));
    this.#isChanged = false;
  }
}

function identifyTranscript(path: string): string {
  const { ino, size, mtimeMs } = lstatSync(path);
  return `${ino} ${size} ${mtimeMs}`;
}

function formatTranscript([transcript, sections]: [string, ReadonlyMap<string, Remembered>]): string {
  const name = JSON.stringify(transcript);
  return [...sections].map(([section, { key, json }]) => `${name}\t${section}\t${key}\t${json}\n`).join('');
}

/** The first line has the version and a hash of the others: a file that was damaged or edited is thrown away. */
function parseIndex(text: string): Map<string, Map<string, Remembered>> {
  const byTranscript = new Map<string, Map<string, Remembered>>();
  const head = text.slice(0, text.indexOf('\n') + 1);
  const body = text.slice(head.length);
  if (head !== `${HEAD} ${hashText(body)}\n`) return byTranscript;
  for (const line of body.split('\n').slice(0, -1)) {
    const [name = '', section = '', key = '', json = ''] = line.split('\t');
    const transcript = JSON.parse(name) as string;
    const sections = byTranscript.get(transcript) ?? new Map<string, Remembered>();
    byTranscript.set(transcript, sections.set(section, { key, json }));
  }
  return byTranscript;
}
