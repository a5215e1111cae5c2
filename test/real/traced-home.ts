import { setTimeout as sleep } from 'node:timers/promises';
import { LangfuseServer, type StoredObservation, stored } from '../support/langfuse-server.js';
import { ClaudeHome, type HomeOptions } from './claude-home.js';
import { differences } from './differences.js';
import type { Served } from './messages-api.js';
import { register } from './registration.js';
import type { Script } from './replies.js';
import { readTranscripts, sum, type Tokens } from './transcripts.js';

const TIMEOUT_MS = 30_000;
/** After so long without a request, nothing more is expected. */
const QUIET_MS = 500;

/** A home in which the built hook is registered, and the server that it exports to. */
export class TracedHome {
  readonly claude: ClaudeHome;
  readonly server: LangfuseServer;
  /** When each response first arrived at the server, by message id. */
  readonly #arrivedAt = new Map<string, number>();

  private constructor(claude: ClaudeHome, server: LangfuseServer) {
    this.claude = claude;
    this.server = server;
    server.misbehave = (_, __, spans) => {
      for (const span of spans) {
        const { message_id: id } = stored(span).metadata;
        if (typeof id === 'string' && !this.#arrivedAt.has(id)) this.#arrivedAt.set(id, Date.now());
      }
      return undefined;
    };
  }

  static async open(script: Script, options?: HomeOptions, registerIn = register): Promise<TracedHome> {
    const traced = new TracedHome(await ClaudeHome.open(script, options), await LangfuseServer.start());
    await registerIn(traced.claude, traced.server);
    return traced;
  }

  /** Waits until everything has arrived and no more requests come. */
  async settled(): Promise<void> {
    const deadline = Date.now() + TIMEOUT_MS;
    for (let requests = -1; Date.now() < deadline; ) {
      const isQuiet = requests === this.server.requests.length;
      if (isQuiet && this.differences.length === 0) return;
      requests = this.server.requests.length;
      await sleep(QUIET_MS);
    }
  }

  /** Returns how long after a moment the last of all answers until then arrived; below 0 if it arrived before. */
  delayAfter(moment: number): number {
    if (this.#answers.length === 0) throw new Error('the scripted API has not answered anything');
    const delays = this.#answers.map(({ id }) => (this.#arrivedAt.get(id) ?? Number.POSITIVE_INFINITY) - moment);
    return Math.max(...delays);
  }

  /** What the server does not have as it should. */
  get differences(): string[] {
    return differences(this.server, readTranscripts(this.claude.transcripts), this.#answers);
  }

  /** The tokens in Langfuse: of responses, and of compactions, whose own call is not a response. */
  get tokens(): Tokens {
    return sum(this.server.observations.map(tokensOf));
  }

  /** The tokens that Claude Code used for itself, for titles and summaries. */
  get asides(): Tokens {
    const asides = this.claude.api.served.filter(({ isAside }) => isAside);
    return sum(
      asides.map(({ usage }) => ({
        input: usage.input_tokens,
        output: usage.output_tokens,
        cacheRead: usage.cache_read_input_tokens,
        cacheWrite: usage.cache_creation_input_tokens,
      })),
    );
  }

  /** The tokens that Claude Code counted itself. */
  get account(): Tokens {
    return sum(readTranscripts(this.claude.transcripts).accounts.values());
  }

  async close(): Promise<void> {
    await this.server.stop();
    await this.claude.close();
  }

  get #answers(): Served[] {
    return this.claude.api.served.filter(({ isAside, isWhole }) => isWhole && !isAside);
  }
}

function tokensOf({ usage = {}, metadata, name }: StoredObservation): Tokens {
  const counted = (figures: { readonly [kind: string]: unknown }, ...kinds: string[]) =>
    kinds.reduce((total, kind) => total + Number(figures[kind] ?? 0), 0);
  if (name === 'compaction') {
    return {
      input: counted(metadata, 'input_tokens'),
      output: counted(metadata, 'output_tokens'),
      cacheRead: counted(metadata, 'cache_read_tokens'),
      cacheWrite: counted(metadata, 'cache_write_tokens'),
    };
  }
  return {
    input: counted(usage, 'input'),
    output: counted(usage, 'output'),
    cacheRead: counted(usage, 'cache_read_input_tokens'),
    cacheWrite: counted(usage, 'input_cache_creation_5m', 'input_cache_creation_1h', 'cache_creation_input_tokens'),
  };
}
