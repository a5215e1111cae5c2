import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, cpSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SESSION } from '../support/lines.js';
import { PROGRAM, Workplace } from '../support/program.js';

/** The user and the group `nobody`. */
const NOBODY = 65_534;
let workplace: Workplace;
let program: string;

beforeEach(async () => {
  workplace = await Workplace.open();
  program = join(workplace.home, 'dist');
  cpSync(dirname(PROGRAM), program, { recursive: true });
});

afterEach(() => workplace.close());

/** Runs the program as another user, whose home this is, except for what is in the state folder. */
function runAsNobody(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(program, 'cli.cjs'), ...args], {
    cwd: workplace.home,
    env: { PATH: process.env.PATH, ...workplace.env } as NodeJS.ProcessEnv,
    encoding: 'utf8',
    uid: NOBODY,
    gid: NOBODY,
  });
  return { exitCode: status, stdout, stderr: stderr.replaceAll(workplace.home, '~') };
}

function giveToNobody(): void {
  const names = readdirSync(workplace.home, { recursive: true, encoding: 'utf8' });
  for (const name of ['', ...names]) chownSync(join(workplace.home, name), NOBODY, NOBODY);
}

const sentence = (path: string, use = 'use') =>
  `cc-langfuse: ${path} belongs to root, so cc-langfuse cannot ${use} it; to get it back: sudo chown -R "$(id -un)" ${path} && chmod -R u+rwX ${path}\n`;
const CANNOT = [
  ['preview'],
  ['open'],
  ['verify'],
  ['log'],
  ['rate', 'good'],
  ['mute'],
  ['unmute'],
  ['backfill', '--yes'],
];
const CAN = [['status'], ['sessions'], ['cost', '--csv']];

test.runIf(process.getuid?.() === 0)(
  'every command says that the state belongs to root, and how to get it back (needs root, who is another user then)',
  () => {
    workplace.addTurn(1);
    mkdirSync(workplace.stateFolder);
    giveToNobody();
    chownSync(workplace.stateFolder, 0, 0);
    chmodSync(workplace.stateFolder, 0o700);
    for (const args of CANNOT)
      expect([args, runAsNobody(...args)]).toEqual([
        args,
        { exitCode: 1, stdout: '', stderr: sentence('~/.claude/state') },
      ]);
    for (const args of CAN)
      expect([args, runAsNobody(...args)]).toEqual([
        args,
        { exitCode: 0, stdout: expect.stringMatching(/./), stderr: sentence('~/.claude/state') },
      ]);
    expect(runAsNobody('statusline').stderr).toBe(
      `${sentence('~/.claude/state')}Add this to ~/.claude/settings.json:\n`,
    );
    const doctor = runAsNobody('doctor');
    expect(doctor.stderr).toBe('');
    expect(doctor.stdout).toContain(
      `  ✗ state-folder    ~/.claude/state belongs to root, so cc-langfuse cannot use it: nothing is sent
                  → sudo chown -R "$(id -un)" ~/.claude/state && chmod -R u+rwX ~/.claude/state
`,
    );
  },
);

test.runIf(process.getuid?.() === 0)(
  'what root has made in a state folder that is the user’s own is named (needs root, who is another user then)',
  async () => {
    workplace.addTurn(1);
    await workplace.stop();
    giveToNobody();
    const path = join(workplace.stateFolder, 'cc-langfuse_sessions');
    chownSync(path, 0, 0);
    expect(runAsNobody('mute', SESSION)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: sentence('~/.claude/state/cc-langfuse_sessions'),
    });
    chmodSync(path, 0o755);
    expect(runAsNobody('preview', SESSION)).toEqual({
      exitCode: 0,
      stdout: expect.stringContaining('question 1'),
      stderr: sentence('~/.claude/state/cc-langfuse_sessions', 'write to'),
    });
  },
);
