import { execFile } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findOwnHooks } from '../../src/config/claude-hooks.js';
import { writeFolderSettings } from '../support/claude-session.js';
import { appendTurn, assistant, at, SESSION, user } from '../support/lines.js';
import { Newcomer } from '../support/newcomer.js';
import { type Environment, POLL } from '../support/program.js';
import { startHook } from '../support/start-hook.js';

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

test('what install has compiled is not compiled by a worker, and without it all works as well', async () => {
  const newcomer = await Newcomer.arrive();
  try {
    await newcomer.install();
    const program = join(newcomer.program, 'current');
    const compiled = join(program, 'compiled', `${process.version}-${process.arch}`);
    const path = newcomer.transcriptOf(SESSION);
    const list = join(newcomer.home, 'list');
    const stub = join(newcomer.home, 'stub.cjs');
    // Node itself compiles what it loads with this method.
    writeFileSync(
      stub,
      `const { prototype } = require('node:module'), compile = prototype._compile;
      prototype._compile = function (text, file) {
        require('node:fs').appendFileSync(${JSON.stringify(list)}, file + '\\n');
        return compile.apply(this, arguments);
      };`,
    );
    /** Sends a turn, and returns whether Node has compiled the worker's file. */
    const isCompiledAgain = async (n: number, env: Environment = {}) => {
      rmSync(list, { force: true });
      appendTurn(path, n);
      const all = { ...newcomer.env, ...JSON.parse(newcomer.settings).env, NODE_OPTIONS: `--require=${stub}`, ...env };
      const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop', prompt_id: `p${n}` };
      const command = [process.execPath, join(program, 'cli.cjs'), 'worker'];
      expect(await startHook(command, payload, { env: all })).toMatchObject({ exitCode: 0, output: '' });
      expect(newcomer.server.roots).toHaveLength(n);
      return readFileSync(list, 'utf8').includes('commands-hook-hook.cjs');
    };
    expect(await isCompiledAgain(1)).toBe(false);
    // Then more of the program is loaded before the hook.
    const project = join(newcomer.home, 'project');
    writeFolderSettings(project, { OF_THE_PROJECT: '1' });
    expect(await isCompiledAgain(2, { CLAUDE_PROJECT_DIR: project })).toBe(false);
    // As after another version of Node: the first worker compiles all for the next one.
    rmSync(compiled);
    expect(await isCompiledAgain(3)).toBe(true);
    expect(existsSync(compiled)).toBe(true);
    expect(await isCompiledAgain(4)).toBe(false);
    // It is no other program that install would have to copy again.
    expect((await newcomer.install()).stdout).not.toContain('installed ');
  } finally {
    await newcomer.close();
  }
});
