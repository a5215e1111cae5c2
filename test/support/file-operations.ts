import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { groupBy } from '../../src/shared/group-by.js';
import { ClaudeSession, writeFolderSettings } from './claude-session.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { SESSION } from './lines.js';
import { homeVariables, PROGRAM } from './program.js';
import { removeFolder } from './remove-folder.js';

const RECORDER = fileURLToPath(new URL('./record-files.cjs', import.meta.url));
const RECORDED = 3;
/** For older versions, other transcripts are looked at: their forks have no mark. */
const WRITTEN_BY = { version: '2.1.326' };

/** A call of `node:fs`. One that has no path is given a descriptor. */
export interface FileOperation {
  readonly name: string;
  readonly path?: string;
  readonly stack: string;
}

export interface StopOperations {
  readonly all: readonly FileOperation[];
  /** Those that name a path below the `.claude` folder of the home. */
  readonly byPath: readonly FileOperation[];
  /** Those that name a settings file, by its path. */
  readonly settings: ReadonlyMap<string, readonly FileOperation[]>;
  /** The names of the turns that Langfuse has then. */
  readonly turns: readonly string[];
}

/**
 * Records the file operations of one Stop: that of the second turn of a session, in a git repository, with keys in the user's
 * settings. `hook` is started if Claude Code waits, `worker` otherwise.
 */
export async function recordStop(command: 'hook' | 'worker', program = PROGRAM): Promise<StopOperations> {
  const home = mkdtempSync(join(tmpdir(), 'cc-langfuse-files-'));
  const server = await LangfuseServer.start();
  try {
    const project = join(home, 'work');
    const settings = {
      TRACE_TO_LANGFUSE: 'true',
      LANGFUSE_PUBLIC_KEY: PUBLIC_KEY,
      LANGFUSE_SECRET_KEY: SECRET_KEY,
      LANGFUSE_BASE_URL: server.url,
    };
    const env = {
      ...settings,
      ...homeVariables(home),
      PATH: process.env.PATH,
      CLAUDE_PROJECT_DIR: project,
      CLAUDE_PID: `${process.pid}`,
      CLAUDE_CODE_ENTRYPOINT: command === 'hook' ? 'sdk-cli' : 'cli',
      CLAUDE_CODE_SESSION_ID: SESSION,
    };
    makeRepository(project);
    writeFolderSettings(home, settings);
    const session = new ClaudeSession(SESSION, join(home, '.claude', 'projects', '-work', `${SESSION}.jsonl`), project);
    const start = (payload: object) => runRecorded([program, command], payload, env, project);
    await start(session.startPayload('startup'));
    session.addTurn(WRITTEN_BY);
    await start(session.payload('Stop'));
    session.addTurn(WRITTEN_BY);
    const all = await start(session.payload('Stop'));
    const folder = join(home, '.claude');
    return {
      all,
      byPath: all.filter(({ path }) => path?.startsWith(folder)),
      settings: groupBy(all.filter(isOfSettings), ({ path = '' }) => path.replace(home, '~')),
      turns: server.roots.map(({ name }) => name),
    };
  } finally {
    await server.stop();
    await removeFolder(home);
  }
}

function makeRepository(folder: string): void {
  mkdirSync(join(folder, '.git'), { recursive: true });
  writeFileSync(join(folder, '.git', 'config'), '[remote "origin"]\n\turl = https://example.com/owner/work.git\n');
}

function isOfSettings({ path = '' }: FileOperation): boolean {
  return /[/\\](?:managed-)?settings(?:\.local)?\.json$/.test(path);
}

/** Resolves with the operations of a process once it has ended. */
function runRecorded(
  args: readonly string[],
  payload: object,
  env: NodeJS.ProcessEnv,
  cwd: string,
): Promise<FileOperation[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--require', RECORDER, ...args], {
      env,
      cwd,
      stdio: ['pipe', 'ignore', 'ignore', 'pipe'],
    });
    let text = '';
    child.stdio[RECORDED]?.on('data', (chunk: Buffer) => {
      text += chunk;
    });
    child.stdin?.end(JSON.stringify(payload));
    child.on('error', reject);
    child.on('close', () => resolve(JSON.parse(text)));
  });
}
