import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { LangfuseServer, PROJECT } from '../support/langfuse-server.js';
import { appendTurn, SESSION } from '../support/lines.js';
import { POLL, run, Workplace } from '../support/program.js';
import { runInTerminal } from '../support/terminal.js';

let workplace: Workplace;

beforeEach(async () => {
  workplace = await Workplace.open();
});

afterEach(() => workplace.close());

const OTHER = '22222222-2222-4222-8222-222222222222';
const append = (n: number, session = SESSION) =>
  appendTurn(workplace.transcriptOf(session), n, { cwd: workplace.home });
const stop = (session = SESSION) =>
  workplace.hook({
    session_id: session,
    transcript_path: workplace.transcriptOf(session),
    hook_event_name: 'Stop',
    cwd: workplace.home,
  });
const open = (...args: string[]) => run(['open', ...args], workplace.env, '', { cwd: workplace.home });
const page = () => `${workplace.server.url}/project/${PROJECT.id}`;
const countProjectRequests = () =>
  workplace.server.requests.filter(({ path }) => path === '/api/public/projects').length;

describe('cc-langfuse open', () => {
  test("prints the session's page, and asks for the project once", async () => {
    append(1);
    await stop();
    const printed = { exitCode: 0, stdout: `${page()}/sessions/${SESSION}\n`, stderr: '' };
    expect(await open()).toMatchObject(printed);
    expect(await open(SESSION.slice(0, 8))).toMatchObject(printed);
    expect(countProjectRequests()).toBe(1);
    // The file has no keys, and is the user's alone.
    const projects = readFileSync(join(workplace.stateFolder, 'cc-langfuse_projects.json'), 'utf8');
    expect(JSON.parse(projects)).toEqual({ [String(workplace.state[SESSION]?.destination)]: page() });
  });

  test("prints the trace of a turn, and selects the turn in a caller's trace", async () => {
    append(1);
    await stop();
    const [trace, span] = ['a'.repeat(32), 'b'.repeat(16)];
    workplace.env = { ...workplace.env, CC_LANGFUSE_TRACEPARENT: `00-${trace}-${span}-01` };
    append(2);
    append(1, OTHER);
    await stop(OTHER);
    const [first, below] = workplace.server.observations.filter(({ name }) => name === 'Turn 1');
    expect(await open('--turn', '1', SESSION)).toMatchObject({ stdout: `${page()}/traces/${first?.traceId}\n` });
    expect(await open('--turn', '1', OTHER)).toMatchObject({
      stdout: `${page()}/traces/${trace}?observation=${below?.id}\n`,
    });
  });

  test('takes the session that Claude Code runs it in, whichever is the newest', async () => {
    append(1);
    await stop();
    append(1, OTHER);
    await stop(OTHER);
    workplace.env = { ...workplace.env, CLAUDE_CODE_SESSION_ID: SESSION };
    expect(await open()).toMatchObject({ stdout: `${page()}/sessions/${SESSION}\n` });
  });

  test('knows the project of a session whose keys are not set any more', async () => {
    append(1);
    await stop();
    await open();
    workplace.env = { ...workplace.env, LANGFUSE_PUBLIC_KEY: undefined, LANGFUSE_SECRET_KEY: undefined };
    expect(await open()).toMatchObject({ exitCode: 0, stdout: `${page()}/sessions/${SESSION}\n` });
  });

  test('says why there is no page, and never asks with the keys of another project', async () => {
    append(1);
    const nothing = 'nothing of the session is in Langfuse yet; cc-langfuse sessions says why';
    expect(await open()).toMatchObject({ exitCode: 1, stdout: '', stderr: `cc-langfuse: ${nothing}\n` });
    expect(await open('--turn', '1')).toMatchObject({ exitCode: 1, stderr: `cc-langfuse: ${nothing}\n` });
    await stop();
    append(2);
    expect(await open('--turn', '2')).toMatchObject({
      stderr: 'cc-langfuse: turn 2 is still to be sent; the next hook sends it, or cc-langfuse backfill\n',
    });
    expect(await open('--turn', '3')).toMatchObject({ stderr: 'cc-langfuse: the session has no such turn\n' });
    const other = await LangfuseServer.start();
    onTestFinished(() => other.stop());
    workplace.env = { ...workplace.env, LANGFUSE_BASE_URL: other.url };
    expect(await open()).toMatchObject({
      exitCode: 1,
      stderr: 'cc-langfuse: the session is in another project; set the keys of that project, then open it\n',
    });
    expect(other.requests).toEqual([]);
    expect(await open(SESSION, OTHER)).toMatchObject({ exitCode: 2 });
  });

  test('in a terminal on a desktop, opens the browser without a shell', async () => {
    append(1);
    await stop();
    const tools = join(workplace.home, 'tools');
    mkdirSync(tools);
    const opener = join(tools, 'xdg-open');
    writeFileSync(
      opener,
      `#!/bin/sh\nprintf '%s|' "$#" "$@" > "${tools}/part" && mv "${tools}/part" "${tools}/opened"\n`,
    );
    chmodSync(opener, 0o755);
    const env = { ...workplace.env, PATH: `${tools}:${process.env.PATH}` };
    const terminal = (more: object) => runInTerminal(['open'], { home: workplace.home, env: { ...env, ...more } });
    const { screen } = await terminal({});
    expect(screen.trim()).toBe(`${page()}/sessions/${SESSION}`);
    await terminal({ DISPLAY: ':0', SSH_CONNECTION: '1 2 3 4' });
    expect(existsSync(join(tools, 'opened'))).toBe(false);
    await terminal({ DISPLAY: ':0' });
    await expect.poll(() => existsSync(join(tools, 'opened')), POLL).toBe(true);
    expect(readFileSync(join(tools, 'opened'), 'utf8')).toBe(`1|${page()}/sessions/${SESSION}|`);
  });
});
