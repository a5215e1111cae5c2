import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { appendLines, assistant, at, user } from './lines.js';

/** A session as Claude Code keeps it: what is said in it goes to a transcript, and its hooks get payloads like the real ones. */
export class ClaudeSession {
  readonly id: string;
  readonly path: string;
  /** The folder that Claude Code was started in. */
  readonly folder: string;
  #turns = 0;

  constructor(id: string, path: string, folder: string) {
    this.id = id;
    this.path = path;
    this.folder = folder;
  }

  /** The text of the last turn's question. */
  get question(): string {
    return `question ${this.#turns} of ${this.id}`;
  }

  /** Appends a turn, a question and its answer. `more` has further fields of the question's line. */
  addTurn(more: object = {}): void {
    this.#turns += 1;
    const n = this.#turns;
    const common = { cwd: this.folder, sessionId: this.id };
    appendLines(
      this.path,
      user(this.question, {
        ...common,
        uuid: `${this.id}-${n}`,
        promptId: this.#promptId,
        timestamp: at(n * 10),
        ...more,
      }),
      assistant(`${this.id}-m${n}`, this.#answer, { ...common, timestamp: at(n * 10 + 5) }),
    );
  }

  payload(event: 'Stop' | 'StopFailure' | 'SessionEnd', more: object = {}): object {
    const isStop = event !== 'SessionEnd';
    return {
      session_id: this.id,
      transcript_path: this.path,
      cwd: this.folder,
      hook_event_name: event,
      prompt_id: this.#promptId,
      ...(isStop && { last_assistant_message: this.#answer, background_tasks: [] }),
      ...more,
    };
  }

  startPayload(source: 'startup' | 'resume' | 'clear' | 'compact' | 'fork'): object {
    return {
      session_id: this.id,
      transcript_path: this.path,
      cwd: this.folder,
      hook_event_name: 'SessionStart',
      source,
    };
  }

  get #promptId(): string {
    return `${this.id}-p${this.#turns}`;
  }

  get #answer(): string {
    return `answer ${this.#turns} of ${this.id}`;
  }
}

/** Writes the variables of a folder's own settings. */
export function writeFolderSettings(folder: string, env: object, name = 'settings.json'): void {
  mkdirSync(join(folder, '.claude'), { recursive: true });
  writeFileSync(join(folder, '.claude', name), JSON.stringify({ env }));
}
