import { execFile, spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { ClaudeHome } from './claude-home.js';

const POLL_MS = 15;
const TIMEOUT_MS = 60_000;
/** Claude Code takes keys that follow too fast, Enter included, for pasted text. */
const BEFORE_ENTER_MS = 60;
/** Claude Code may still redraw the screen some 100 ms after its prompt appears. */
const STEADY_POLLS = 4;
const STEADY_POLL_MS = 40;

const QUESTION_POLL_MS = 400;

let terminals = 0;

export function hasTmux(): boolean {
  return spawnSync('tmux', ['-V']).status === 0;
}

/** Claude Code in a terminal of its own (tmux). */
export class Terminal {
  readonly #socket: string;

  private constructor(socket: string) {
    this.#socket = socket;
  }

  /** Resolves once Claude Code accepts input. */
  static async open(claude: string, { work, env }: ClaudeHome, args: readonly string[] = []): Promise<Terminal> {
    terminals += 1;
    const terminal = new Terminal(`cc-langfuse-${process.pid}-${terminals}`);
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const size = ['-x', '160', '-y', '50'];
    const start = ['new-session', '-d', ...size, '-c', work, 'env', '-i', ...variables, claude, ...args];
    // The screen and the exit code stay available after the program has ended.
    await terminal.#tmux('start-server', ';', 'set-option', '-g', 'remain-on-exit', 'on', ';', ...start);
    let steady = 0;
    await terminal.#until('its prompt', STEADY_POLL_MS, async () => {
      steady = isReady(await terminal.screen()) ? steady + 1 : 0;
      return steady === STEADY_POLLS;
    });
    return terminal;
  }

  /** The text on the screen. */
  screen(): Promise<string> {
    return this.#tmux('capture-pane', '-p');
  }

  press(...keys: readonly string[]): Promise<string> {
    return this.#tmux('send-keys', ...keys);
  }

  /** Types a line, and sends it. */
  async type(line: string): Promise<void> {
    await this.write(line);
    await this.press('Enter');
  }

  /** Types without sending. */
  async write(line: string): Promise<void> {
    await this.#tmux('send-keys', '-l', line);
    await this.shows(line);
    await sleep(BEFORE_ENTER_MS);
  }

  /** Waits until the screen shows a text. Returns the time. */
  async shows(text: string | RegExp, timeoutMs = TIMEOUT_MS): Promise<number> {
    const isOn = (screen: string) => (typeof text === 'string' ? screen.includes(text) : text.test(screen));
    await this.#until(String(text), POLL_MS, async () => isOn(await this.screen()), timeoutMs);
    return Date.now();
  }

  /** Answers a question with a key, repeatedly, since Claude Code accepts it only some time after showing the question. */
  async answer(question: string, key: string): Promise<void> {
    await this.shows(question);
    await this.#until(`the end of ${question}`, QUESTION_POLL_MS, async () => {
      const isAsked = (await this.screen()).includes(question);
      if (isAsked) await this.press(key);
      return !isAsked;
    });
  }

  /** Waits until the screen no longer shows a text. */
  async gone(text: string): Promise<void> {
    await this.#until(`the end of ${text}`, POLL_MS, async () => !(await this.screen()).includes(text));
  }

  /** Waits until the turn is over and the next one may begin. */
  async idle(): Promise<void> {
    await this.#until('the end of the turn', POLL_MS, async () => {
      const screen = await this.screen();
      return isReady(screen) && !/esc to interrupt|… \(/.test(screen);
    });
  }

  /** Waits until the program has ended. Returns its exit code. */
  async ended(): Promise<number> {
    let code = '';
    await this.#until('its end', POLL_MS, async () => {
      const [isDead, status = ''] = (await this.#tmux('list-panes', '-F', '#{pane_dead} #{pane_dead_status}')).split(
        ' ',
      );
      code = status;
      return isDead === '1';
    });
    return Number(code);
  }

  async close(): Promise<void> {
    await this.#tmux('kill-server').catch(() => {});
  }

  async #until(what: string, everyMs: number, isSo: () => Promise<boolean>, timeoutMs = TIMEOUT_MS): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!(await isSo())) {
      if (Date.now() > deadline) throw new Error(`${what} did not appear; the screen:\n${await this.screen()}`);
      await sleep(everyMs);
    }
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)('tmux', ['-L', this.#socket, '-f', '/dev/null', ...args]);
    return stdout;
  }
}

function isReady(screen: string): boolean {
  return /^❯/m.test(screen) && /\? for shortcuts|accept edits|plan mode|auto mode/.test(screen);
}
