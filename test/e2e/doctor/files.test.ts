import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Patient } from '../../support/doctor.js';
import { SECRET_KEY } from '../../support/langfuse-server.js';

let patient: Patient;

beforeEach(async () => {
  patient = await Patient.open();
});

afterEach(() => patient.close());

describe('files', () => {
  const STATE = '~/.claude/state/cc-langfuse_state.json';

  test('that cannot be written, since something else has their place', async () => {
    mkdirSync(join(patient.workplace.home, '.claude'));
    writeFileSync(patient.workplace.stateFolder, '');
    expect(await patient.told('state-folder')).toEqual([
      {
        status: 'broken',
        message: '~/.claude/state cannot be written (~/.claude/state: no folder): nothing is sent without it',
        fix: 'mv ~/.claude/state ~/.claude/state.old',
      },
    ]);
  });

  test('in a home that is read-only', async ({ skip }) => {
    const readOnly = join(patient.workplace.home, 'readonly');
    mkdirSync(readOnly);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'ro', 'tmpfs', readOnly], { stdio: 'ignore' });
    } catch {
      skip('a disk of its own needs the right to mount one');
    }
    try {
      expect(await patient.told('state-folder', { HOME: readOnly })).toEqual([
        {
          status: 'broken',
          message: '~/readonly/.claude/state cannot be written (~/readonly: EROFS): nothing is sent without it',
          fix: 'set CLAUDE_CONFIG_DIR to a folder on a disk that can be written',
        },
      ]);
    } finally {
      execFileSync('umount', [readOnly]);
    }
  });

  test('in a folder that is not its own', async ({ skip }) => {
    if (process.getuid?.() === 0) skip('root may write everywhere');
    mkdirSync(patient.workplace.stateFolder, { recursive: true });
    chmodSync(patient.workplace.stateFolder, 0o500);
    expect(await patient.told('state-folder')).toMatchObject([
      { status: 'broken', fix: 'sudo chown "$(id -un)" ~/.claude/state && chmod u+rwx ~/.claude/state' },
    ]);
  });

  test('on a full disk', async ({ skip }) => {
    const small = join(patient.workplace.home, 'small');
    mkdirSync(small);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', small], { stdio: 'ignore' });
    } catch {
      skip('a small disk of its own needs the right to mount one');
    }
    try {
      const message = expect.stringMatching(/^~\/small\/\.claude\/state: its disk is full \([\d.]+ KB free\)$/);
      expect(await patient.told('state-folder', { HOME: small })).toEqual([
        { status: 'broken', message, fix: 'make room on it' },
      ]);
    } finally {
      execFileSync('umount', [small]);
    }
  });

  test('that are corrupt, now or before', async () => {
    patient.writeState('{"a":');
    expect(await patient.told('state')).toEqual([
      {
        status: 'warning',
        message: `${STATE} is corrupt: the next hook sets it aside and keeps what stands whole in it`,
        fix: 'nothing has to be done; what it has lost is sent again, under the same ids',
      },
    ]);
    writeFileSync(join(patient.workplace.stateFolder, 'cc-langfuse_state.json.corrupt-17'), '');
    expect(await patient.told('state-set-aside')).toEqual([
      {
        status: 'warning',
        message: `1 corrupt state file set aside: ${STATE}.corrupt-17`,
        fix: `rm ${STATE}.corrupt-17`,
      },
    ]);
  });

  test('in whose place something else lies', async () => {
    mkdirSync(join(patient.workplace.stateFolder, 'cc-langfuse_state.json'), { recursive: true });
    expect(await patient.told('state')).toEqual([
      {
        status: 'broken',
        message: `the state file ${STATE} cannot be read: not a regular file`,
        fix: `mv ${STATE} ${STATE}.old`,
      },
    ]);
  });

  test('that others may read', async () => {
    patient.writeState({});
    chmodSync(join(patient.workplace.stateFolder, 'cc-langfuse_state.json'), 0o644);
    expect(await patient.told('file-mode')).toEqual([
      { status: 'warning', message: `others may read ${STATE} (644)`, fix: `chmod 600 ${STATE}` },
    ]);
  });

  test('below a name with a space: what mends them can be copied into a shell', async () => {
    const home = join(patient.workplace.home, 'my home');
    const state = join(home, '.claude', 'state');
    mkdirSync(state, { recursive: true });
    writeFileSync(join(state, 'cc-langfuse_state.json'), '{}', { mode: 0o644 });
    const fix = `chmod 600 '${join(state, 'cc-langfuse_state.json')}'`;
    const short = fix.replace(patient.workplace.home, '~');
    expect(await patient.told('file-mode', { HOME: home })).toMatchObject([{ fix: short }]);
    expect((await patient.doctor([], { HOME: home })).stdout).toContain(`\u2192 ${fix}\n`);
  });

  test('that lock what nobody works on', async () => {
    const locks = join(patient.workplace.stateFolder, 'cc-langfuse_locks');
    mkdirSync(locks, { recursive: true });
    writeFileSync(join(locks, 'a.lock'), '1 elsewhere');
    utimesSync(join(locks, 'a.lock'), 1, 1);
    execFileSync('mkfifo', [join(locks, 'fifo.lock')]);
    writeFileSync(join(locks, 'b.lock'), `${process.pid} ${hostname()}`);
    expect(await patient.told('locks')).toEqual([
      {
        status: 'warning',
        message: '1 lock of runs that were killed; the next run drops what it meets',
        fix: 'rm ~/.claude/state/cc-langfuse_locks/a.lock',
      },
    ]);
  });

  test('that log what went wrong, summed up', async () => {
    mkdirSync(patient.workplace.stateFolder, { recursive: true });
    const line = (level: string, msg: string, time: number) =>
      `${JSON.stringify({ level, msg, time: new Date(time) })}\n`;
    const now = Date.now();
    const lines = [
      line('error', 'long ago', now - 30 * 86_400_000),
      line('debug', 'exported', now),
      ...Array.from({ length: 12 }, () =>
        line('warn', `the server at http://me:hunter2@proxy said ${SECRET_KEY}`, now),
      ),
      'no JSON\n',
      line('error', 'stdin is not JSON', now),
    ];
    writeFileSync(join(patient.workplace.stateFolder, 'cc-langfuse_hook.log'), lines.join(''), { mode: 0o600 });
    const message = expect.stringMatching(
      /^in the last 7 days: 12 × "the server at http:\/\/…@proxy said sk-lf-…" \(last [\d: -]+\), 1 × "stdin is not JSON" \(last [\d: -]+\)$/,
    );
    expect(await patient.told('log')).toEqual([
      { status: 'warning', message, fix: 'tail ~/.claude/state/cc-langfuse_hook.log' },
    ]);
  });
});
