import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { assistant, at, SESSION, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';

test('a full disk: nothing is sent over and over, and all of it once there is room again', async ({ skip }) => {
  const workplace = await Workplace.open();
  const claude = join(workplace.home, '.claude');
  mkdirSync(claude);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', claude], { stdio: 'ignore' });
  } catch {
    await workplace.close();
    skip('a small disk of its own needs the right to mount one');
  }
  try {
    const path = join(workplace.home, `${SESSION}.jsonl`);
    const lines: string[] = [];
    const turn = async (n: number) => {
      const prompt = user(`q${n}`, { uuid: `u${n}`, timestamp: at(n * 10) });
      lines.push(JSON.stringify(prompt), JSON.stringify(assistant(`m${n}`, 'a', { timestamp: at(n * 10 + 1) })));
      writeFileSync(path, `${lines.join('\n')}\n`);
      const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
      const { exitCode, stdout, stderr, ms } = await workplace.hook(payload);
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      expect(ms).toBeLessThan(2_000);
      return stderr;
    };
    expect(await turn(1)).toBe('');
    expect(() => writeFileSync(join(claude, 'all of it'), Buffer.alloc(400_000))).toThrow(/ENOSPC/);
    for (const n of [2, 3]) expect(await turn(n)).toMatch(/the state folder cannot be written: ENOSPC/);
    expect(workplace.server.observations).toHaveLength(2);
    rmSync(join(claude, 'all of it'));
    expect(await turn(4)).toBe('');
    expect(workplace.server.observations).toHaveLength(8);
    expect([...workplace.server.arrivals.values()].every((times) => times === 1)).toBe(true);
  } finally {
    execFileSync('umount', [claude]);
    await workplace.close();
  }
});
