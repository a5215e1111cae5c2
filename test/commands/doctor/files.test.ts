import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { SECRET_KEY } from '../../support/langfuse-server.js';
import { mount } from '../../support/mount.js';

const STATE = '~/.claude/state/cc-langfuse_state.json';
let home: DoctorHome;

beforeEach(async () => {
  home = await DoctorHome.open();
});

afterEach(() => home.close());

describe('the state folder', () => {
  test('is broken if a file is in its place', async () => {
    mkdirSync(join(home.home, '.claude'));
    writeFileSync(home.stateFolder, '');
    expect((await home.check()).of('state-folder')).toEqual([
      {
        status: 'broken',
        message: '~/.claude/state cannot be written (~/.claude/state: not a folder), so nothing is sent',
        fix: 'mv ~/.claude/state ~/.claude/state.old',
      },
    ]);
  });

  test('is broken on a read-only disk (needs the right to mount)', async ({ skip }) => {
    const readOnly = join(home.home, 'readonly');
    const unmount = mount(readOnly, 'ro') ?? skip();
    try {
      expect((await home.check({ HOME: readOnly })).of('state-folder')).toEqual([
        {
          status: 'broken',
          message: '~/readonly/.claude/state cannot be written (~/readonly: EROFS), so nothing is sent',
          fix: 'set CC_LANGFUSE_STATE_DIR to a folder on a writable disk',
        },
      ]);
    } finally {
      unmount();
    }
  });

  // Root may write everywhere.
  test.skipIf(process.getuid?.() === 0)(
    'is broken if it belongs to someone else (needs a user other than root)',
    async () => {
      mkdirSync(home.stateFolder, { recursive: true });
      chmodSync(home.stateFolder, 0o500);
      expect((await home.check()).of('state-folder')).toMatchObject([
        { status: 'broken', fix: 'sudo chown "$(id -un)" ~/.claude/state && chmod u+rwx ~/.claude/state' },
      ]);
    },
  );

  test('is broken on a full disk (needs the right to mount)', async ({ skip }) => {
    const small = join(home.home, 'small');
    const unmount = mount(small, 'size=300k') ?? skip();
    try {
      expect((await home.check({ HOME: small })).of('state-folder')).toEqual([
        {
          status: 'broken',
          message: expect.stringMatching(/^the disk of ~\/small\/\.claude\/state is full \([\d.]+ KB free\)$/),
          fix: 'free space on it',
        },
      ]);
    } finally {
      unmount();
    }
  });
});

describe('the state file', () => {
  test('is a warning if it is corrupt', async () => {
    home.writeState('{"a":');
    expect((await home.check()).of('state')).toEqual([
      {
        status: 'warning',
        message: `${STATE} is corrupt: the next hook sets it aside and keeps the entries that are intact`,
        fix: 'nothing to do: what was lost is sent again, under the same ids',
      },
    ]);
  });

  test('that was set aside is a warning', async () => {
    home.writeState({});
    writeFileSync(join(home.stateFolder, 'cc-langfuse_state.json.corrupt-17'), '');
    const found = await home.check();
    expect(found.of('state')).toMatchObject([{ status: 'ok' }]);
    expect(found.of('state-set-aside')).toEqual([
      {
        status: 'warning',
        message: `1 corrupt state file set aside: ${STATE}.corrupt-17`,
        fix: `rm ${STATE}.corrupt-17`,
      },
    ]);
  });

  test('is broken if a folder is in its place', async () => {
    mkdirSync(join(home.stateFolder, 'cc-langfuse_state.json'), { recursive: true });
    expect((await home.check()).of('state')).toEqual([
      {
        status: 'broken',
        message: `the state file ${STATE} cannot be read: not a regular file`,
        fix: `mv ${STATE} ${STATE}.old`,
      },
    ]);
  });

  test('is a warning if others can read it', async () => {
    home.writeState({});
    chmodSync(join(home.stateFolder, 'cc-langfuse_state.json'), 0o644);
    expect((await home.check()).of('file-mode')).toEqual([
      { status: 'warning', message: `others can read ${STATE} (its mode is 644)`, fix: `chmod 600 ${STATE}` },
    ]);
  });
});

test('locks of processes that no longer run are a warning', async () => {
  const locks = join(home.stateFolder, 'cc-langfuse_locks');
  mkdirSync(locks, { recursive: true });
  writeFileSync(join(locks, 'a.lock'), '1 elsewhere');
  utimesSync(join(locks, 'a.lock'), 1, 1);
  execFileSync('mkfifo', [join(locks, 'fifo.lock')]);
  writeFileSync(join(locks, 'b.lock'), `${process.pid} ${hostname()}`);
  expect((await home.check()).of('locks')).toEqual([
    {
      status: 'warning',
      message: '1 lock left behind by killed runs; the next run removes those that it needs',
      fix: 'rm ~/.claude/state/cc-langfuse_locks/a.lock',
    },
  ]);
});

test('warnings and errors in the log are counted by message', async () => {
  mkdirSync(home.stateFolder, { recursive: true });
  const line = (level: string, msg: string, time: number) =>
    `${JSON.stringify({ level, msg, time: new Date(time) })}\n`;
  const now = Date.now();
  const lines = [
    line('error', 'long ago', now - 30 * 86_400_000),
    line('debug', 'exported', now),
    ...Array.from({ length: 12 }, () => line('warn', `the server at http://me:hunter2@proxy said ${SECRET_KEY}`, now)),
    'no JSON\n',
    line('error', 'stdin is not JSON', now),
  ];
  writeFileSync(join(home.stateFolder, 'cc-langfuse_hook.log'), lines.join(''), { mode: 0o600 });
  const message = expect.stringMatching(
    /^in the last 7 days: 12 × "the server at http:\/\/…@proxy said sk-lf-…" \(last [\d: -]+\), 1 × "stdin is not JSON" \(last [\d: -]+\)$/,
  );
  expect((await home.check()).of('log')).toEqual([{ status: 'warning', message, fix: 'cc-langfuse log' }]);
});
