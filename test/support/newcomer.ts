import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { type Ended, type Environment, homeVariables, run, Workplace } from './program.js';

/** Options for the keys; the secret one is read from stdin. */
export const KEYS = ['--public-key', PUBLIC_KEY, '--secret-key-stdin'];

/** More than a compressed request without spans has, and less than one with a span. */
const EMPTY_BYTES = 300;

/** Whether a request looks up the keys' project, or is empty and finds out whether the keys may write. */
export function isTrial({ path, bytes }: LangfuseServer['requests'][number]): boolean {
  return path === '/api/public/projects' || (path === '/api/public/otel/v1/traces' && bytes < EMPTY_BYTES);
}

/** A user with a Langfuse server who has not installed anything yet. */
export class Newcomer extends Workplace {
  override env: Environment = homeVariables(this.home);
  readonly settingsFile = join(this.home, '.claude', 'settings.json');
  /** Where install puts the program. */
  readonly program = join(this.home, '.claude', 'cc-langfuse');

  static async arrive(): Promise<Newcomer> {
    return new Newcomer(await LangfuseServer.start());
  }

  run(args: readonly string[], stdin = '', cwd = this.home): Promise<Ended> {
    return run(args, this.env, stdin, { cwd });
  }

  install(...args: string[]): Promise<Ended> {
    return this.run(['install', '--yes', ...KEYS, '--base-url', this.server.url, ...args], `${SECRET_KEY}\n`);
  }

  /** The text of the settings file. */
  get settings(): string {
    return readFileSync(this.settingsFile, 'utf8');
  }

  set settings(text: string) {
    mkdirSync(dirname(this.settingsFile), { recursive: true });
    writeFileSync(this.settingsFile, text);
  }

  /** Closes the home. Returns the requests that the server received, except for those that only try the keys. */
  async leave(): Promise<string[]> {
    await this.close();
    return this.server.requests.filter((request) => !isTrial(request)).map(({ path }) => path);
  }
}
