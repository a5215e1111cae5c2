// Replaces `claude -p <prompt>`: plays the recording that the prompt names, and calls the hooks as the real program does.
import { homedir } from 'node:os';
import { run } from './program.js';
import { play, recording, recordings } from './recording.js';

const [, prompt = ''] = process.argv.slice(2);
if (recordings().some(({ name }) => name === prompt)) {
  const env = { ...process.env, CLAUDE_CODE_ENTRYPOINT: 'sdk-cli' };
  await play(recording(prompt), homedir(), async ({ payload }) => {
    await run(['hook'], env, JSON.stringify(payload));
  });
  process.stdout.write(`answer to ${prompt}\n`);
} else {
  process.stderr.write(`no recording ${prompt}\n`);
  process.exitCode = 1;
}
