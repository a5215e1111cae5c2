import type { Line } from '../file/line.js';
import type { Turn } from '../turns/turn.js';

/**
 * The file of an agent that is a fork of the main thread begins with a copy of the response that launched it, and with another
 * result for that call, next to which is the fork's prompt. Of these, only the prompt is the fork's own.
 */
export class ForkHead {
  #launch: { readonly id: string | undefined; readonly at: number | undefined } | undefined;

  /** Returns the lines that are the agent's own. */
  *drop(lines: Iterable<Line>): Generator<Line, void, undefined> {
    let isHead = false;
    for (const line of lines) {
      if (line.kind === 'other' && line.type === 'fork-context-ref') isHead = true;
      if (line.kind === 'assistant' && this.#isCopy(line.fields.message?.id, line.at, isHead)) continue;
      yield line.kind === 'user' && isHead ? { ...line, content: withoutResults(line.content) } : line;
      if (line.kind === 'user') isHead = false;
    }
  }

  /** A fork works since the response that launched it. */
  startTurn(turn: Turn): Turn {
    const [first, ...more] = turn.prompts;
    return { ...turn, prompts: [{ ...first, at: this.#launch?.at ?? first.at }, ...more] };
  }

  #isCopy(id: string | undefined, at: number | undefined, isHead: boolean): boolean {
    if (isHead) this.#launch ??= { id, at };
    return this.#launch !== undefined && id === this.#launch.id && (isHead || id !== undefined);
  }
}

function withoutResults(content: unknown): unknown {
  return Array.isArray(content) ? content.filter((block) => block?.type !== 'tool_result') : content;
}
