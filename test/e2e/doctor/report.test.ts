import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { version } from '../../../src/shared/version.js';
import { Patient } from '../../support/doctor.js';
import { sessionIdOf, writeSession } from '../../support/generated.js';
import { Newcomer } from '../../support/newcomer.js';
import { PROGRAM, run } from '../../support/program.js';
import { runInTerminal } from '../../support/terminal.js';

let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

describe('the whole of it', () => {
  /** Without what differs from machine to machine and from run to run. */
  const plain = (text: string) =>
    text
      .replaceAll(process.execPath, '/usr/bin/node')
      .replaceAll(realpathSync(PROGRAM), '/opt/cc-langfuse/dist/cli.cjs')
      .replaceAll(process.version, 'v20.19.0')
      .replaceAll(` ${version} `, ' 1.0.0 ')
      .replaceAll(`:${patient.workplace.server.port}`, ':3000')
      .replace(/\d{4}-\d\d-\d\d \d\d:\d\d, \d+ s ago/, '2026-10-01 12:00, 1 s ago')
      .replace(/(\(1 session, )\d+ B/, '$1625 B')
      .replace(/to \d s\b/, 'to 1 s');

  test('where all is well', async () => {
    patient.setUp({ LANGFUSE_TAGS: 'team-a' });
    const session = { sessionId: sessionIdOf(1), cwd: patient.project, turns: 2, startsAt: Date.now() - 86_400_000 };
    writeSession(patient.workplace.projects, session);
    await run(['backfill', '--all'], patient.workplace.env);
    const { stdout, exitCode } = await patient.doctor();
    expect(exitCode).toBe(0);
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "Program
        ✓ node            v20.19.0 (/usr/bin/node)
        ✓ cc-langfuse     1.0.0 (/opt/cc-langfuse/dist/cli.cjs)
        ✓ claude-code     2.1.326, by the last session (00000001-0000-4000-8000-000000000000)

      Hooks
        ✓ hooks           registered in user settings (~/.claude/settings.json)
        ✓ hook-program    ~/.claude/settings.json starts this program

      Settings
        ✓ tracing         on, by ~/.claude/settings.json
        ✓ public-key      LANGFUSE_PUBLIC_KEY is pk-lf-em…, by ~/.claude/settings.json
        ✓ secret-key      LANGFUSE_SECRET_KEY is sk-lf-…, by ~/.claude/settings.json
        ✓ base-url        LANGFUSE_BASE_URL is http://127.0.0.1:3000, by ~/.claude/settings.json
        ✓ setting         LANGFUSE_TAGS is team-a, by ~/.claude/settings.json

      Files
        ✓ state-folder    ~/.claude/state
        ✓ state           ~/.claude/state/cc-langfuse_state.json (1 session, 625 B)
        - log             no hook has had anything to say

      Server
        ✓ endpoint        http://127.0.0.1:3000 is Langfuse 4.16.0
        ✓ keys            they open the project "Embedded"
        ✓ otlp            takes OpenTelemetry (200)
        ✓ clock           as the server's, to 1 s
        - proxy           none is used
        - certificates    those that Node knows

      Sessions
        ✓ last-export     2026-10-01 12:00, 1 s ago: session 00000001-0000-4000-8000-000000000000, 2 turns
        ✓ pending         no session waits to be sent

      Nothing is broken.
      "
    `);
  });

  test('after install', async () => {
    const newcomer = await Newcomer.arrive();
    expect(await newcomer.install()).toMatchObject({ exitCode: 0 });
    const { stdout, exitCode } = await newcomer.run(['doctor']);
    await newcomer.close();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\nNothing is broken\.\n$/);
  });

  test('in an empty home', async () => {
    patient.workplace.env = { HOME: patient.workplace.home };
    const { stdout, exitCode } = await patient.doctor();
    expect(exitCode).toBe(1);
    expect(plain(stdout)).toMatchInlineSnapshot(`
      "Program
        ✓ node            v20.19.0 (/usr/bin/node)
        ✓ cc-langfuse     1.0.0 (/opt/cc-langfuse/dist/cli.cjs)
        - claude-code     no session on disk that would tell its version

      Hooks
        ✗ hooks           not registered in any settings
                        → cc-langfuse install

      Settings
        ✗ tracing         off: TRACE_TO_LANGFUSE is not set
                        → cc-langfuse install, or "TRACE_TO_LANGFUSE": "true" in the env block of ~/.claude/settings.json
        ✗ public-key      LANGFUSE_PUBLIC_KEY is not set
                        → cc-langfuse install, or "LANGFUSE_PUBLIC_KEY" in the env block of ~/.claude/settings.json
        ✗ secret-key      LANGFUSE_SECRET_KEY is not set
                        → cc-langfuse install, or "LANGFUSE_SECRET_KEY" in the env block of ~/.claude/settings.json

      Files
        - state-folder    ~/.claude/state is made by the first hook
        - state           nothing has been exported yet
        - log             no hook has had anything to say

      Server
        - endpoint        not asked: without keys and a server there is nothing to ask
        - proxy           none is used
        - certificates    those that Node knows

      Sessions
        - last-export     no turn has been exported yet
        ✓ pending         no session waits to be sent

      4 things are broken.
      "
    `);
  });

  test('as JSON is one document of this shape, and each thing that is wrong has what mends it', async () => {
    const { exitCode, ok, checks } = await patient.checked();
    expect({ exitCode, ok }).toEqual({ exitCode: 1, ok: false });
    expect(checks.length).toBeGreaterThan(15);
    for (const check of checks) {
      expect(check).toEqual({
        name: expect.stringMatching(/^[a-z-]+$/),
        part: expect.stringMatching(/^(?:program|hooks|settings|files|server|sessions)$/),
        status: expect.stringMatching(/^(?:ok|warning|broken|none)$/),
        message: expect.any(String),
        ...(['warning', 'broken'].includes(check.status) && { fix: expect.stringMatching(/./) }),
        details: expect.any(Object),
      });
    }
  });

  test('in a terminal of 80 columns fits, in colours unless nobody wants them', async () => {
    patient.workplace.env = { HOME: patient.workplace.home };
    const { screen, exitCode } = await runInTerminal(['doctor'], patient.workplace);
    expect(exitCode).toBe(1);
    expect(screen).toContain('\u001b[31m✗\u001b[39m hooks');
    const lines = stripVTControlCharacters(screen).split('\r\n');
    // A path is left whole, since it is there to be copied.
    expect(lines.filter((line) => line.length > 80 && !/^ +\S+$| {2,}\S+ \(\S+\)$/.test(line))).toEqual([]);
    expect(lines).toContain('                  → cc-langfuse install, or "TRACE_TO_LANGFUSE": "true" in the');
    expect(lines).toContain('                    env block of ~/.claude/settings.json');
    patient.workplace.env = { HOME: patient.workplace.home, NO_COLOR: '1' };
    const { screen: plainly } = await runInTerminal(['doctor'], patient.workplace);
    expect(plainly).toBe(stripVTControlCharacters(plainly));
  });

  test('with mere warnings exits with 0', async () => {
    patient.setUp({ CC_LANGFUSE_TIMEOUT: 'soon' });
    const { stdout, exitCode } = await patient.doctor();
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/\nNothing is broken, 1 thing to look at\.\n$/);
  });

  test('sends no observation, and leaves every file as it was', async () => {
    patient.setUp();
    patient.writeState('corrupt');
    mkdirSync(join(patient.workplace.stateFolder, 'cc-langfuse_locks'));
    writeFileSync(join(patient.workplace.stateFolder, 'cc-langfuse_locks', 'x.lock'), '1 elsewhere');
    const before = treeOf(patient.workplace.home);
    await patient.doctor();
    await patient.doctor(['--json']);
    expect(treeOf(patient.workplace.home)).toEqual(before);
    expect(patient.workplace.server.observations).toEqual([]);
    expect(patient.workplace.server.requests.map(({ spans, events }) => spans + events)).toEqual(Array(8).fill(0));
  });

  test.each([
    [['--frob'], "Unknown option '--frob'; --help lists the options"],
    [['x'], 'x: doctor takes no operands'],
  ])('cannot be asked so: %j', async (args, words) => {
    expect(await patient.doctor(args)).toMatchObject({ exitCode: 2, stdout: '', stderr: `cc-langfuse: ${words}\n` });
  });
});

function treeOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      const status = statSync(path);
      const hash = status.isFile() ? createHash('sha256').update(readFileSync(path)).digest('hex') : '';
      return `${name} ${status.mode} ${status.mtimeMs} ${hash}`;
    });
}

describe('the program', () => {
  test('runs on a Node that is too old', async () => {
    const fake = join(patient.workplace.home, 'old.cjs');
    writeFileSync(fake, "Object.defineProperty(process, 'version', { value: 'v18.20.0' });");
    expect(await patient.told('node', { NODE_OPTIONS: `--require ${fake}` })).toEqual([
      {
        status: 'broken',
        message: `v18.20.0 (${process.execPath}) is older than 20.19`,
        fix: 'install Node 20.19 or newer: https://nodejs.org',
      },
    ]);
  });

  test('reads what an old Claude Code has written', async () => {
    const path = writeSession(patient.workplace.projects, {
      sessionId: sessionIdOf(1),
      cwd: '/x',
      turns: 1,
      startsAt: 0,
    });
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll('2.1.326', '2.1.90'));
    expect(await patient.told('claude-code')).toEqual([
      {
        status: 'warning',
        message: `2.1.90, by the last session (${sessionIdOf(1)}): up to 2.1.90 it notes too few output tokens`,
        fix: 'claude update',
      },
    ]);
  });
});
