import { UsageError } from '../../cli/command-line.js';
import { ownCommand } from '../../cli/own-command.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { readSettings } from '../../config/settings.js';
import { ObservationReader } from '../../langfuse/observation-reader.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { explainRefusedReading } from '../../langfuse/server.js';
import type { Target } from '../../langfuse/target.js';
import { ReadingRefused } from '../../langfuse/words.js';
import { memoize } from '../../shared/memoize.js';

/** The Langfuse project of a folder's sessions. */
export interface Destination {
  readonly id: string;
  readonly target: Target;
  readonly reader: ObservationReader;
  /** The folder's settings. */
  readonly env: NodeJS.ProcessEnv;
  /** Why nothing of the folder is sent. */
  readonly exclusion: string | undefined;
}

const NEED = { keys: 'keys that may read (Viewer or full access)', command: `${ownCommand()} verify` } as const;

/** The projects that the settings of folders name. */
export class Destinations {
  readonly #shell: NodeJS.ProcessEnv;
  readonly #readers = new Map<string, ObservationReader>();
  readonly #refusals = new Map<string, Promise<string>>();
  /** Throws a `UsageError` if the folder's settings name no Langfuse. */
  readonly find = memoize((folder: string) => this.#read(folder));

  constructor(shell: NodeJS.ProcessEnv) {
    this.#shell = shell;
  }

  /** Until when a server has asked to wait, in ms since 1970. */
  get pausedUntil(): number {
    return Math.max(0, ...[...this.#readers.values()].map(({ pausedUntil }) => pausedUntil));
  }

  /** Why nothing could be read there, for the user. */
  explain(error: Error, { id, target }: Destination): Promise<string> {
    const { langfuse } = target;
    if (!(error instanceof ReadingRefused) || !langfuse) return Promise.resolve(error.message);
    const known = this.#refusals.get(id) ?? explainRefusedReading(error.refusal, langfuse, NEED);
    this.#refusals.set(id, known);
    return known;
  }

  async close(): Promise<void> {
    for (const reader of this.#readers.values()) await reader.close();
  }

  async #read(folder: string): Promise<Destination> {
    const { env, optOut: exclusion } = await readCommandSettings(this.#shell, folder);
    const { destination } = await readSettings(env);
    const target = destination && findTarget(destination);
    if (!target)
      throw new UsageError(
        `verify needs a Langfuse server and its keys: ${adviseOnKeys(this.#shell, `run ${ownCommand()} install, or set them in the shell`)}`,
      );
    const { id, langfuse, name, url } = target;
    if (!langfuse)
      throw new UsageError(
        `verify reads from Langfuse, but the settings name ${name} at ${url.host}, which cannot be read`,
      );
    const reader = this.#readers.get(id) ?? new ObservationReader(langfuse);
    this.#readers.set(id, reader);
    return { id, target, reader, env, exclusion };
  }
}
