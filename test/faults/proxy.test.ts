import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { assistant, jsonLines, SESSION, user } from '../support/lines.js';
import { Workplace } from '../support/program.js';
import { withSilentServer } from '../support/silent-server.js';

test('the hook ends at its deadline if a proxy accepts the connection but never answers', () =>
  withSilentServer(async (url) => {
    const workplace = await Workplace.open();
    workplace.env = {
      ...workplace.env,
      LANGFUSE_BASE_URL: 'https://langfuse.test',
      HTTPS_PROXY: url,
      CC_LANGFUSE_TIMEOUT: '800',
    };
    const path = join(workplace.home, `${SESSION}.jsonl`);
    writeFileSync(path, jsonLines([user('q'), assistant('m', 'a')]));
    const payload = { session_id: SESSION, transcript_path: path, hook_event_name: 'Stop' };
    expect(await workplace.hook(payload)).toMatchObject({ exitCode: 0, stdout: '' });
    expect(workplace.state[SESSION]).toMatchObject({
      pending: { reason: expect.stringMatching(/no answer|out of time/) },
    });
    await workplace.close();
  }));
