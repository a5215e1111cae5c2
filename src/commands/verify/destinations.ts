import { UsageError } from '../../cli/command-line.js';
import { ownCommand } from '../../cli/own-command.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { adviseOnKeys } from '../../config/missing-keys.js';
import { readSettings } from '../../config/settings.js';
import { describeRefusal } from '../../langfuse/endpoint.js';
import { ObservationReader, ReadingRefused } from '../../langfuse/observation-reader.js';
import { findTarget } from '../../langfuse/open-destination.js';
import { describeOnlyWriting, mayWrite } from '../../langfuse/server.js';
import type { Target } from '../../langfuse/target.js';

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

const PROBE_MS = 10_000;

/** The projects that the settings of folders name. */
export class Destinations {
  readonly #shell: NodeJS.ProcessEnv;
  readonly #byFolder = new Map<string, Promise<Destination>>();
  readonly #readers = new Map<string, ObservationReader>();
  readonly #refusals = new Map<string, Promise<string>>();

  constructor(shell: NodeJS.ProcessEnv) {
    this.#shell = shell;
  }

  /** Throws a `UsageError` if the folder's settings name no Langfuse. */
  find(folder: string): Promise<Destination> {
    const known = this.#byFolder.get(folder) ?? this.#read(folder);
    this.#byFolder.set(folder, known);
    return known;
  }

  /** Until when a server has asked to wait, in ms since 1970. */
  get pausedUntil(): number {
    return Math.max(0, ...[...this.#readers.values()].map(({ pausedUntil }) => pausedUntil));
  }

  /** Why nothing could be read there, for the user. */
  explain(error: Error, { id, target }: Destination): Promise<string> {
    if (!(error instanceof ReadingRefused)) return Promise.resolve(error.message);
    const known = this.#refusals.get(id) ?? explainRefusal(error, target);
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

async function explainRefusal({ status }: ReadingRefused, { langfuse }: Target): Promise<string> {
  if (!langfuse) return '';
  if (!(await mayWrite(langfuse, { deadline: Date.now() + PROBE_MS }))) return describeRefusal(langfuse, status);
  return (
    `${describeOnlyWriting(langfuse, status)}. ` +
    'Hooks and backfill work with them. For verify, make keys that may read (project settings, API keys), and set them for this command: ' +
    `LANGFUSE_PUBLIC_KEY=… LANGFUSE_SECRET_KEY=… ${ownCommand()} verify`
  );
}
