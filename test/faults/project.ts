import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../support/program.js';
import { type Capture, type Config, strictestOf } from './turn-oracle.js';

/** What the settings of a project say: nothing, what it may not, or that it is not to be traced. */
export type ProjectKind = 'plain' | 'widens' | 'opts out';

/** None of the values is a string, as people write them. */
const VARIABLES: { readonly [kind in ProjectKind]: { readonly [name: string]: string | number | boolean } } = {
  plain: {},
  widens: {
    HTTP_PROXY: 'http://127.0.0.1:9',
    HTTPS_PROXY: 'http://127.0.0.1:9',
    NODE_TLS_REJECT_UNAUTHORIZED: 0,
    CC_LANGFUSE_CAPTURE: 'full',
    CC_LANGFUSE_MAX_CHARS: -5,
    CC_LANGFUSE_REDACT: false,
  },
  'opts out': { TRACE_TO_LANGFUSE: false },
};
/** What the user's own settings say where a project wants more. */
const OWN_CAPTURE = 'no_tool_io';

/** A folder that can be reached by two names. */
export class Project {
  readonly #kind: ProjectKind;
  readonly #real: string;
  readonly #link: string;
  readonly #isLinked: boolean;

  constructor(home: string, kind: ProjectKind, isLinked: boolean) {
    this.#kind = kind;
    this.#isLinked = isLinked;
    this.#real = join(home, 'work');
    this.#link = join(home, 'link');
    mkdirSync(this.#real, { recursive: true });
    symlinkSync(this.#real, this.#link);
    if (kind === 'plain') return;
    writeSettings(this.#real, VARIABLES[kind]);
    if (kind === 'widens') writeSettings(home, { CC_LANGFUSE_CAPTURE: OWN_CAPTURE });
  }

  /** Where Claude Code is started. */
  get folder(): string {
    return this.#isLinked ? this.#link : this.#real;
  }

  /** By which name it is excluded. */
  get otherName(): string {
    return this.#isLinked ? this.#real : this.#link;
  }

  get isOff(): boolean {
    return this.#kind === 'opts out';
  }

  /** What Claude Code passes on to hooks in place of the user's values. */
  get passed(): Environment {
    return Object.fromEntries(Object.entries(VARIABLES[this.#kind]).map(([name, value]) => [name, String(value)]));
  }

  /** How a process in this folder is traced. */
  limit(config: Config): Config {
    if (this.#kind === 'opts out') return { ...config, tracing: 'off' };
    return this.#kind === 'widens' ? { ...config, capture: OWN_CAPTURE } : config;
  }

  /** What a command sends that was told to send this. */
  limitCapture(capture: Capture): Capture {
    return this.#kind === 'widens' ? strictestOf(capture, OWN_CAPTURE) : capture;
  }
}

function writeSettings(folder: string, env: object): void {
  mkdirSync(join(folder, '.claude'), { recursive: true });
  writeFileSync(join(folder, '.claude', 'settings.json'), JSON.stringify({ env }));
}
