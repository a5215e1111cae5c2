import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { HOOK_SECONDS } from '../../src/config/claude-hooks.js';
import { isSetting } from '../../src/config/settings.js';
import { ClaudeSession } from '../support/claude-session.js';
import { PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { PROGRAM, Workplace } from '../support/program.js';

const ROOT = new URL('../../', import.meta.url).pathname;
const EXAMPLE = join(ROOT, 'examples/claude-code-action.yml');

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: { readonly [input: string]: string };
  readonly env?: { readonly [name: string]: string };
}

const workflow: { readonly jobs: { readonly claude: { readonly steps: readonly Step[] } } } = parse(
  readFileSync(EXAMPLE, 'utf8'),
);
const { steps } = workflow.jobs.claude;
const find = (part: string) => steps.find(({ uses, run }) => (uses ?? run)?.includes(part)) ?? {};
const installing = find('cc-langfuse install');
const action = find('anthropics/claude-code-action');

let workplace: Workplace;
let temp: string;
let env: NodeJS.ProcessEnv;

beforeEach(async () => {
  workplace = await Workplace.open();
  temp = join(workplace.home, 'runner temp');
  const bin = join(workplace.home, 'bin');
  for (const folder of [temp, bin]) mkdirSync(folder);
  env = { HOME: workplace.home, PATH: `${bin}${delimiter}${process.env.PATH}`, RUNNER_TEMP: temp, CI: 'true' };
});

afterEach(() => workplace.close());

/** What GitHub puts in the place of an expression. */
function evaluate(text: string): string {
  const values: { readonly [expression: string]: string } = {
    'runner.temp': temp,
    'vars.LANGFUSE_PUBLIC_KEY': PUBLIC_KEY,
    'secrets.LANGFUSE_SECRET_KEY': SECRET_KEY,
    'vars.LANGFUSE_BASE_URL': workplace.server.url,
  };
  return text.replace(/\$\{\{ *([\w.]+) *\}\}/g, (_, expression: string) => values[expression] ?? '');
}

const evaluateAll = (variables: object = {}) =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, evaluate(value)]));

/** Runs the step's commands. Git and npm are replaced by links to the built program: the package is tested elsewhere. */
function runInstallStep(): void {
  const bin = join(workplace.home, 'bin');
  for (const name of ['git', 'npm']) {
    writeFileSync(join(bin, name), '#!/bin/sh\n[ "$1" != clone ] || mkdir "$4"\n');
    chmodSync(join(bin, name), 0o755);
  }
  const program = join(workplace.home, 'program');
  cpSync(dirname(PROGRAM), program, { recursive: true });
  symlinkSync(join(program, 'cli.cjs'), join(bin, 'cc-langfuse'));
  symlinkSync(join(program, 'hook.sh'), join(bin, 'cc-langfuse-hook'));
  const { status, stderr } = spawnSync('bash', ['-e', '-o', 'pipefail', '-c', installing.run ?? ''], {
    env: { ...env, ...evaluateAll(installing.env) },
    encoding: 'utf8',
  });
  expect([status, stderr.replace(/^cc-langfuse: .* PATH of each user\n$/, '')]).toEqual([0, '']);
}

/** What the action does with its input: it reads the file that is named, and merges it over the user's settings. */
function writeSettingsOfAction(existing: object): { hooks: { [event: string]: [{ hooks: [{ command: string }] }] } } {
  const given = JSON.parse(readFileSync(evaluate(action.with?.settings ?? ''), 'utf8'));
  const settings = { ...existing, ...given, enableAllProjectMcpServers: true };
  mkdirSync(join(workplace.home, '.claude'), { recursive: true });
  writeFileSync(join(workplace.home, '.claude', 'settings.json'), JSON.stringify(settings));
  return settings;
}

test('the example makes the settings that the action is given, and they have the hooks but no keys', () => {
  runInstallStep();
  const settings = JSON.parse(readFileSync(evaluate(action.with?.settings ?? ''), 'utf8'));
  expect(Object.keys(settings.hooks)).toEqual(Object.keys(HOOK_SECONDS));
  expect(settings.env).toEqual({ TRACE_TO_LANGFUSE: 'true' });
  expect(JSON.stringify(steps)).not.toContain('lf-');
  expect(Object.keys(action.env ?? {}).filter((name) => !isSetting(name))).toEqual([]);
});

test('a turn under these settings is in Langfuse when its Stop hook ends, and names the job', async () => {
  runInstallStep();
  const { hooks } = writeSettingsOfAction({});
  const id = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';
  const session = new ClaudeSession(id, workplace.transcriptOf(id), join(workplace.home, 'work'));
  mkdirSync(session.folder);
  const fire = async (event: string, payload: object) => {
    const child = spawn('sh', ['-c', hooks[event]?.[0].hooks[0].command ?? ''], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: {
        ...env,
        ...evaluateAll(action.env),
        TRACE_TO_LANGFUSE: 'true',
        CLAUDE_CODE_ENTRYPOINT: 'claude-code-github-action',
        CLAUDE_PROJECT_DIR: session.folder,
        GITHUB_ACTIONS: 'true',
        GITHUB_REPOSITORY: 'owner/name',
        GITHUB_RUN_ID: '42',
      },
      cwd: session.folder,
    });
    // The server runs in this process.
    child.stdin.end(JSON.stringify(payload));
    const ended = once(child, 'close');
    expect([await readText(child.stdout), (await ended)[0]]).toEqual(['', 0]);
  };
  await fire('SessionStart', session.startPayload('startup'));
  session.addTurn();
  await fire('Stop', session.payload('Stop'));
  expect(workplace.server.roots.map(({ trace }) => trace.metadata)).toMatchObject([
    { github_repository: 'owner/name', github_run_id: 42 },
  ]);
});
