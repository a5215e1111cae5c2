import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DoctorHome } from '../../support/doctor.js';
import { SECRET_KEY } from '../../support/langfuse-server.js';
import { mount } from '../../support/mount.js';
import { sessionFile } from '../../support/state-files.js';

const SESSIONS = '~/.claude/state/cc-langfuse_sessions';
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
    'is broken if it must not be written (needs a user other than root)',
    async () => {
      mkdirSync(home.stateFolder, { recursive: true });
      chmodSync(home.stateFolder, 0o500);
      expect((await home.check()).of('state-folder')).toMatchObject([
        {
          status: 'broken',
          message: '~/.claude/state is yours, but its mode keeps you from using it: nothing is sent',
          fix: 'chmod -R u+rwX ~/.claude/state',
        },
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

describe('the state', () => {
  test('is broken if what is known of a session is corrupt', async () => {
    home.writeState({ a: '{"runs":' });
    const path = `${SESSIONS}/a/session.json`;
    expect((await home.check()).of('state')).toEqual([
      {
        status: 'broken',
        message: `${path} cannot be read, so nothing of its session is sent`,
        fix: `mv ${path} ${path}.old`,
      },
    ]);
  });

  test('of which something was set aside is a warning', async () => {
    home.writeState({ a: {} });
    writeFileSync(sessionFile(home.stateFolder, 'a', 'x.json.corrupt-17'), '');
    const found = await home.check();
    expect(found.of('state')).toEqual([{ status: 'ok', message: `${SESSIONS} (1 session)` }]);
    const path = `${SESSIONS}/a/x.json.corrupt-17`;
    expect(found.of('state-set-aside')).toEqual([
      {
        status: 'warning',
        message: `1 corrupt file set aside, so their turns are sent again: ${path}`,
        fix: `rm ${path}`,
      },
    ]);
  });

  test('is a warning if others can read it', async () => {
    home.writeState({ a: {} });
    chmodSync(join(home.stateFolder, 'cc-langfuse_sessions'), 0o755);
    expect((await home.check()).of('file-mode')).toEqual([
      { status: 'warning', message: `others can read ${SESSIONS} (its mode is 755)`, fix: `chmod go= ${SESSIONS}` },
    ]);
  });
});

test('locks of processes that no longer run are a warning', async () => {
  home.writeState({ s: {} });
  const path = (name: string) => sessionFile(home.stateFolder, 's', name);
  writeFileSync(path('a.lock'), '1 elsewhere');
  utimesSync(path('a.lock'), 1, 1);
  execFileSync('mkfifo', [path('fifo.lock')]);
  writeFileSync(path('b.lock'), `${process.pid} ${hostname()}`);
  expect((await home.check()).of('locks')).toEqual([
    {
      status: 'warning',
      message: '1 lock left behind by killed runs; the next run that needs one removes it',
      fix: `rm ${SESSIONS}/s/a.lock`,
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
