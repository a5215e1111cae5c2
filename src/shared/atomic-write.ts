import { chmodSync, chownSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { attempt } from './attempt.js';

type Content = string | Buffer;

/** Writes a whole file or nothing. Without a mode, an existing file keeps its mode; it always keeps its owner, and symlinks to it. */
export function writeFileAtomically(path: string, content: Content, mode?: number): void {
  const replacement = new Replacement(path, mode);
  try {
    writeFileSync(replacement.temporary, content, FLUSHED);
    replacement.finish();
  } catch (error) {
    replacement.discard();
    throw error;
  }
}

/** The same, while the process does other work. */
export async function writeFileAtomicallyMeanwhile(path: string, content: Content, mode?: number): Promise<void> {
  const replacement = new Replacement(path, mode);
  try {
    await writeFile(replacement.temporary, content, FLUSHED);
    replacement.finish();
  } catch (error) {
    replacement.discard();
    throw error;
  }
}

/** The file may contain keys, so until it has its own mode only its owner can read it. */
const FLUSHED = { mode: 0o600, flush: true } as const;

/** A temporary file that is to replace another. Only one at a time in a process may replace the same file. */
class Replacement {
  readonly temporary: string;
  readonly #path: string;
  readonly #mode: number | undefined;

  constructor(path: string, mode: number | undefined) {
    this.#path = attempt(() => realpathSync(path)) ?? path;
    this.#mode = mode;
    this.temporary = `${this.#path}.${process.pid}`;
  }

  finish(): void {
    const existing = statSync(this.#path, { throwIfNoEntry: false });
    // Only root may do that, and only root has to.
    if (existing && existing.uid !== process.getuid?.())
      attempt(() => chownSync(this.temporary, existing.uid, existing.gid));
    chmodSync(this.temporary, this.#mode ?? existing?.mode ?? 0o666 & ~process.umask());
    renameSync(this.temporary, this.#path);
  }

  discard(): void {
    rmSync(this.temporary, { force: true });
  }
}
