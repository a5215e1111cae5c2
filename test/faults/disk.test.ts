import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { assistant, at, SESSION, user } from '../support/lines.js';
import { mount } from '../support/mount.js';
import { Workplace } from '../support/program.js';
import { expectEachSentOnce } from '../support/sent-once.js';

test('on a full disk nothing is sent; once there is room, each turn is sent once (needs the right to mount)', async ({
  skip,
}) => {
  const workplace = await Workplace.open();
  const claude = join(workplace.home, '.claude');
  const unmount = mount(claude, 'size=300k');
  if (!unmount) {
    await workplace.close();
    return skip();
  }
  try {
    const path = join(workplace.home, `${SESSION}.jsonl`);
    const lines: string[] = [];
    const turn = async (n: number) => {
      const prompt = user(`q${n}`, { uuid: `u${n}`, timestamp: at(n * 10) });
      lines.push(JSON.stringify(prompt), JSON.stringify(assistant(`m${n}`, 'a', { timestamp: at(n * 10 + 1) })));
      writeFileSync(path, `${lines.join('\n')}\n`);
      const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
      const { exitCode, stdout, stderr } = await workplace.hook(payload);
      expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: '' });
      return stderr;
    };
    expect(await turn(1)).toBe('');
    const { length: requests } = workplace.server.requests;
    expect(() => writeFileSync(join(claude, 'all of it'), Buffer.alloc(400_000))).toThrow(/ENOSPC/);
    for (const n of [2, 3]) expect(await turn(n)).toMatch(/the state folder cannot be written: ENOSPC/);
    expect(workplace.server.requests).toHaveLength(requests);
    expect(workplace.server.observations).toHaveLength(2);
    rmSync(join(claude, 'all of it'));
    expect(await turn(4)).toBe('');
    expect(workplace.server.observations).toHaveLength(8);
    expectEachSentOnce(workplace.server);
  } finally {
    unmount();
    await workplace.close();
  }
});
