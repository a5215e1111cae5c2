import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { HOOK_SECONDS } from '../../src/config/claude-hooks.js';
import { isRecord, parseJson } from '../../src/shared/json.js';
import { removeFolder } from '../support/remove-folder.js';
import { MessagesApi } from './messages-api.js';
import type { Script } from './replies.js';

export interface HomeOptions {
  /** Files in the project's folder, by path. */
  readonly files?: { readonly [path: string]: string | Buffer };
  /** The commands of the user's own hooks, by event. */
  readonly hooks?: { readonly [event: string]: string };
  /** Registers one more hook for each event, which keeps the payload. */
  readonly keepsPayloads?: boolean;
  /** Variables that the user has set. */
  readonly env?: { readonly [name: string]: string };
}

export interface HookPayload {
  readonly hook_event_name: string;
  readonly [field: string]: unknown;
}

const API_KEY = 'sk-ant-scripted';

/** A user with a home, a project's folder, and a scripted API. */
export class ClaudeHome {
  readonly home: string;
  readonly work: string;
  readonly api: MessagesApi;
  readonly #root: string;
  readonly #env: HomeOptions['env'];

  private constructor(root: string, api: MessagesApi, env: HomeOptions['env']) {
    this.#root = root;
    this.#env = env;
    this.home = join(root, 'home');
    this.work = join(root, 'work');
    this.api = api;
  }

  static async open(script: Script, options: HomeOptions = {}): Promise<ClaudeHome> {
    const root = mkdtempSync(join(tmpdir(), 'cc-langfuse-real-'));
    const home = new ClaudeHome(root, await MessagesApi.start(script, join(root, 'work')), options.env);
    mkdirSync(home.#payloads);
    home.#write('home/.claude.json', JSON.stringify(atHome(home.work)));
    home.#write('home/.claude/settings.json', JSON.stringify(settings(home.#payloads, options)));
    for (const [path, content] of Object.entries({ 'a.txt': 'alpha\n', 'b.txt': 'beta\n', ...options.files })) {
      home.#write(join('work', path), content);
    }
    return home;
  }

  /** Contains nothing of the caller's environment, since its keys and settings would change the result. */
  get env(): { readonly [name: string]: string } {
    return {
      HOME: this.home,
      // The plugin looks for Node on it.
      PATH: `${dirname(process.execPath)}:/usr/local/bin:/usr/bin:/bin`,
      SHELL: '/bin/bash',
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      ANTHROPIC_BASE_URL: this.api.url,
      ANTHROPIC_API_KEY: API_KEY,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      DISABLE_ERROR_REPORTING: '1',
      DISABLE_TELEMETRY: '1',
      ...this.#env,
    };
  }

  /** The paths of all transcripts, those of subagents included. */
  get transcripts(): string[] {
    const projects = join(this.home, '.claude', 'projects');
    return readdirSync(projects, { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.jsonl'))
      .map((path) => join(projects, path));
  }

  /** The id of the session whose transcript changed last. */
  get lastSession(): string {
    const sessions = this.transcripts.filter((path) => !basename(path).startsWith('agent-'));
    const [last = ''] = sessions.toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
    return basename(last, '.jsonl');
  }

  /** The payloads that Claude Code passed to its hooks. A hook that was stopped at once may not have kept it. */
  get payloads(): HookPayload[] {
    return readdirSync(this.#payloads).flatMap((name) => {
      const payload = parseJson(readFileSync(join(this.#payloads, name), 'utf8'));
      return isRecord(payload) ? [payload as HookPayload] : [];
    });
  }

  /** The text of the program's log. */
  get log(): string {
    try {
      return readFileSync(join(this.home, '.claude', 'state', 'cc-langfuse_hook.log'), 'utf8');
    } catch {
      return '';
    }
  }

  async close(): Promise<void> {
    await this.api.stop();
    await removeFolder(this.#root);
  }

  get #payloads(): string {
    return join(this.#root, 'payloads');
  }

  #write(path: string, content: string | Buffer): void {
    const whole = join(this.#root, path);
    mkdirSync(dirname(whole), { recursive: true });
    writeFileSync(whole, content);
  }
}

/** The user has completed the tour, approved the key and trusted the folder, so there is no question before the first prompt. */
function atHome(work: string): object {
  return {
    hasCompletedOnboarding: true,
    numStartups: 5,
    theme: 'dark',
    autoUpdates: false,
    customApiKeyResponses: { approved: [API_KEY], rejected: [] },
    projects: { [work]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
    hasSeenAutoDefaultNudge: true,
    hasResetAutoModeOptInForDefaultOffer: true,
  };
}

function settings(payloads: string, { hooks: own = {}, keepsPayloads }: HomeOptions): object {
  const keepPayload = `cat > "$(mktemp "${payloads}/XXXXXXXX")"`;
  const keptEvents = keepsPayloads ? Object.keys(HOOK_SECONDS) : [];
  const events = new Set([...keptEvents, ...Object.keys(own)]);
  const hooks = [...events].map((event) => {
    const commands = [keptEvents.includes(event) ? keepPayload : undefined, own[event]].filter(
      (command) => command !== undefined,
    );
    return [event, [{ hooks: commands.map((command) => ({ type: 'command', command })) }]];
  });
  return {
    // In the default mode a service checks the start of a subagent, and the scripted API has no such service.
    permissions: { defaultMode: 'acceptEdits', allow: ['Read', 'Write', 'Edit', 'Bash', 'Agent', 'Task'] },
    hooks: Object.fromEntries(hooks),
  };
}
