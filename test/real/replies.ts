/** A block of an answer in the form of the Messages API. A tool call gets its id when it is sent. */
export type ReplyBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'tool_use'; readonly name: string; readonly input: { readonly [name: string]: unknown } };

export interface Failure {
  readonly status: number;
  readonly type: string;
  readonly message: string;
}

/** The model's answer to one request. */
export interface Reply {
  /** How the request fails before it is answered: each once, or for good if there is no content. */
  readonly failures?: readonly Failure[];
  readonly content?: readonly ReplyBlock[];
  /** The time between two words, if the text is streamed word by word. */
  readonly msPerWord?: number;
}

/**
 * The replies of the API: for each prompt, one for each request of its tool loop. A subagent's prompt is like any other.
 * `$WORK` is replaced by the project's folder, `$PLAN` by the path of the plan.
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
