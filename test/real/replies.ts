/** A block of an answer, as the Messages API has it; a tool call's id is given when it is served. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: { readonly [name: string]: unknown } };

export interface Failure {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

/** What the model answers to one request. */
export interface Reply {
  /** How the request fails before it is answered: each once, or for good where there is no content. */
  readonly failures?: readonly Failure[];
  readonly content?: readonly ReplyBlock[];
  /** The text comes word by word, so long apart. */
  readonly msPerWord?: number;
}

/**
 * A session as the API sees it: to each prompt its replies, one for each request of its tool loop. A subagent's prompt is
 * one like any other. `$WORK` stands for the session's folder, `$PLAN` for the plan's file.
 */
export interface Script {
  readonly [prompt: string]: readonly Reply[];
}

export function says(...content: readonly ReplyBlock[]): Reply {
  return { content };
}

export function text(words: string): ReplyBlock {
  return { type: 'text', text: words };
}

export function thinking(words: string): ReplyBlock {
  return { type: 'thinking', thinking: words, signature: 'c2NyaXB0ZWQ=' };
}

export function call(name: string, input: { readonly [name: string]: unknown }): ReplyBlock {
  return { type: 'tool_use', name, input };
}

export function bash(command: string): ReplyBlock {
  return call('Bash', { command, description: 'Run a command' });
}
