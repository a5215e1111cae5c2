import { execFileSync, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { assistant, SESSION, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';

const SILENT = '127.0.0.54';
const PROGRAM = new URL('../../dist/cli.cjs', import.meta.url).pathname;
/** Linux itself waits 20 s and more for a name server. */
const KILLED_AFTER_MS = 15_000;

test('the hook ends by itself long before Linux gives up on a silent name server (needs the right to mount and port 53)', async ({
  skip,
}) => {
  const workplace = await Workplace.open();
  const resolver = createSocket('udp4');
  try {
    try {
      execFileSync('unshare', ['--mount', 'true'], { stdio: 'ignore' });
      await promisify((done: (error?: Error) => void) => {
        resolver.once('error', done);
        resolver.bind(53, SILENT, () => done());
      })();
    } catch {
      skip();
    }
    const [path, settings] = [join(workplace.home, `${SESSION}.jsonl`), join(workplace.home, 'resolv.conf')];
    mkdirSync(workplace.stateFolder, { recursive: true });
    writeFileSync(path, `${JSON.stringify(user('q', { promptId: 'p1' }))}\n${JSON.stringify(assistant('m', 'a'))}\n`);
    writeFileSync(settings, `nameserver ${SILENT}\nsearch lan\n`);
    const { status, stdout } = spawnSync(
      'unshare',
      [
        '--mount',
        'sh',
        '-c',
        'mount --bind "$1" /etc/resolv.conf && exec "$2" "$3" hook',
        'sh',
        settings,
        process.execPath,
        PROGRAM,
      ],
      {
        env: {
          PATH: process.env.PATH,
          ...workplace.env,
          LANGFUSE_BASE_URL: 'http://langfuse.test',
          CC_LANGFUSE_TIMEOUT: '1000',
        },
        input: JSON.stringify({ session_id: SESSION, transcript_path: path, hook_event_name: 'Stop', prompt_id: 'p1' }),
        timeout: KILLED_AFTER_MS,
      },
    );
    expect({ status, stdout: String(stdout) }).toEqual({ status: 0, stdout: '' });
    expect(workplace.log).toMatchObject([{ msg: expect.stringMatching(/no answer within|EAI_AGAIN|out of time/) }]);
  } finally {
    resolver.close();
    await workplace.close();
  }
});
