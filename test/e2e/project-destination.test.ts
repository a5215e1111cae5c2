import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sessionIdOf, writeSession } from '../support/generated.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from '../support/langfuse-server.js';
import { KEYS } from '../support/newcomer.js';
import { run, Workplace } from '../support/program.js';

let workplace: Workplace;
let ofProject: LangfuseServer;
let project: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  ofProject = await LangfuseServer.start();
  project = join(workplace.home, 'project');
  mkdirSync(project);
  writeSession(workplace.projects, {
    sessionId: sessionIdOf(1),
    cwd: project,
    turns: 1,
    startsAt: Date.now() - 86_400_000,
  });
  workplace.letIdle();
});

afterEach(async () => {
  await workplace.close();
  await ofProject.stop();
});

const local = () => join(project, '.claude', 'settings.local.json');
const inProject = (args: string[], stdin = '', env = workplace.env) => run(args, env, stdin, { cwd: project });
const received = () => [workplace.server, ofProject].map(({ roots }) => roots.length);

function writeLocal(settings: object): void {
  mkdirSync(dirname(local()), { recursive: true });
  writeFileSync(local(), JSON.stringify(settings));
}

test('what install suggests for a project goes where the hooks go that it has just installed there', async () => {
  const installed = await inProject(
    ['install', '--yes', '--scope', 'local', ...KEYS, '--base-url', ofProject.url],
    `${SECRET_KEY}\n`,
  );
  expect(installed).toMatchObject({ exitCode: 0 });
  expect(installed.stdout).toContain("To send this directory's earlier sessions there: cc-langfuse backfill.");
  const own = { HOME: workplace.home };
  expect((await inProject(['sessions'], '', own)).stdout).toContain('not exported');
  expect(await inProject(['backfill', '--yes'], '', own)).toMatchObject({ exitCode: 0 });
  expect(received()).toEqual([0, 1]);
});

test('a destination in project settings that nobody installed on this machine gets nothing', async () => {
  const keys = { LANGFUSE_PUBLIC_KEY: PUBLIC_KEY, LANGFUSE_SECRET_KEY: SECRET_KEY };
  writeLocal({ env: { ...keys, LANGFUSE_BASE_URL: ofProject.url } });
  const { stdout } = await inProject(['backfill', '--yes', '--all']);
  expect(stdout).toContain(`– ${sessionIdOf(1)} is for another project`);
  writeLocal({ env: { LANGFUSE_BASE_URL: ofProject.url } });
  await inProject(['backfill', '--yes', '--all']);
  expect(received()).toEqual([1, 0]);
  expect(ofProject.requests).toEqual([]);
});

test('a destination that was installed into project settings is not believed once somebody has changed it', async () => {
  const args = ['install', '--yes', '--scope', 'local', ...KEYS, '--base-url', workplace.server.url];
  await inProject(args, `${SECRET_KEY}\n`);
  writeFileSync(local(), readFileSync(local(), 'utf8').replaceAll(workplace.server.url, ofProject.url));
  const { exitCode, stderr } = await inProject(['backfill', '--yes'], '', { HOME: workplace.home });
  expect(exitCode).toBe(2);
  expect(stderr).toContain('there is nowhere to send to');
  expect(ofProject.requests).toEqual([]);
});
