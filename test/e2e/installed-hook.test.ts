import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findOwnHooks } from '../../src/config/claude-hooks.js';
import { assistant, at, SESSION, user } from '../support/lines.js';
import { Newcomer } from '../support/newcomer.js';
import { POLL } from '../support/program.js';

test('the command that install registers exports a turn with only HOME and the env block', async () => {
  const newcomer = await Newcomer.arrive();
  try {
    await newcomer.install();
    const path = join(newcomer.home, `${SESSION}.jsonl`);
    const lines = [
      user('q', { uuid: 'u1', promptId: 'p1', timestamp: at(1) }),
      assistant('m1', 'a', { timestamp: at(2) }),
    ];
    writeFileSync(path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
    const settings = JSON.parse(newcomer.settings);
    const command = findOwnHooks(settings).find(({ event }) => event === 'Stop')?.command ?? '';
    const payload = {
      session_id: SESSION,
      transcript_path: path,
      hook_event_name: 'Stop',
      prompt_id: 'p1',
      last_assistant_message: 'a',
    };
    await new Promise((resolve) => {
      const options = { env: { HOME: newcomer.home, ...settings.env } };
      execFile('/bin/sh', ['-c', command], options, resolve).stdin?.end(JSON.stringify(payload));
    });
    // The hook is headless, so it has handed over to a worker.
    await expect.poll(() => newcomer.server.roots.map(({ name }) => name), POLL).toEqual(['Turn 1']);
  } finally {
    await newcomer.close();
  }
});
