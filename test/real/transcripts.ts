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
  /** Claude Code's own account of each session that has one, the last in its file. */
  readonly accounts: ReadonlyMap<string, Tokens>;
}

interface TranscriptLine {
  readonly type: string;
  readonly message?: {
    readonly id: string;
    readonly model?: string;
    readonly content: readonly { readonly type: string; readonly id?: string }[];
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
  const accounts = new Map<string, Tokens>();
  for (const path of paths) {
    for (const { type, message, modelUsage } of linesOf(path)) {
      if (type === 'cost-state' && modelUsage) accounts.set(basename(path, '.jsonl'), accountOf(modelUsage));
      if (type !== 'assistant' || !message || message.model === '<synthetic>') continue;
      responses.add(message.id);
      for (const { type, id } of message.content) if (type === 'tool_use' && id !== undefined) toolCalls.add(id);
    }
  }
  return { responses, toolCalls, accounts };
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
