import { readFileSync } from 'node:fs';
import { basename } from 'node:path';

/** Tokens by kind. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** The content of transcripts. */
export interface TranscriptContent {
  readonly responses: ReadonlySet<string>;
  readonly toolCalls: ReadonlySet<string>;
  /**
   * How many states of each tool call a hook may have seen: each result, since another process can take a running call to be
   * interrupted, and none yet if the turn of another process ended meanwhile.
   */
  readonly states: ReadonlyMap<string, number>;
  /** Claude Code's own account of each session that has one, the last in its file. */
  readonly accounts: ReadonlyMap<string, Tokens>;
}

interface Block {
  readonly type: string;
  readonly id?: string;
  readonly tool_use_id?: string;
}

interface TranscriptLine {
  readonly type: string;
  readonly subtype?: string;
  readonly message?: {
    readonly id: string;
    readonly model?: string;
    readonly content: string | readonly Block[];
  };
  readonly modelUsage?: {
    readonly [model: string]: {
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly cacheReadInputTokens: number;
      readonly cacheCreationInputTokens: number;
    };
  };
}

/**
 * Reads transcripts as simply as possible and without the program's own code, which is compared with this. A response that
 * a fork copied counts once, since it keeps its id.
 */
export function readTranscripts(paths: readonly string[]): TranscriptContent {
  const responses = new Set<string>();
  const toolCalls = new Set<string>();
  const states = new Map<string, number>();
  const addState = (id: string) => states.set(id, (states.get(id) ?? 0) + 1);
  const accounts = new Map<string, Tokens>();
  for (const path of paths) {
    const running = new Set<string>();
    for (const { type, subtype, message, modelUsage } of linesOf(path)) {
      if (subtype === 'stop_hook_summary') running.forEach(addState);
      if (type === 'cost-state' && modelUsage) accounts.set(basename(path, '.jsonl'), accountOf(modelUsage));
      if (!message || typeof message.content === 'string') continue;
      for (const { tool_use_id: id } of message.content) {
        if (id === undefined) continue;
        running.delete(id);
        addState(id);
      }
      if (type !== 'assistant' || message.model === '<synthetic>') continue;
      responses.add(message.id);
      for (const { type, id } of message.content) {
        if (type !== 'tool_use' || id === undefined) continue;
        toolCalls.add(id);
        running.add(id);
      }
    }
    // An agent that continues in another session has the result there.
    running.forEach(addState);
  }
  return { responses, toolCalls, states, accounts };
}

export function sum(all: Iterable<Tokens>): Tokens {
  const total = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  for (const one of all) {
    total.input += one.input;
    total.output += one.output;
    total.cacheRead += one.cacheRead;
    total.cacheWrite += one.cacheWrite;
  }
  return total;
}

function accountOf(models: NonNullable<TranscriptLine['modelUsage']>): Tokens {
  return sum(
    Object.values(models).map((usage) => ({
      input: usage.inputTokens,
      output: usage.outputTokens,
      cacheRead: usage.cacheReadInputTokens,
      cacheWrite: usage.cacheCreationInputTokens,
    })),
  );
}

function linesOf(path: string): TranscriptLine[] {
  const texts = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return texts.map((text) => JSON.parse(text) as TranscriptLine);
}
