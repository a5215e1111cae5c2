import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { claudeProgram } from './claude-code.js';
import { register } from './registration.js';
import { bash, type Script, says, text } from './replies.js';
import { hasTmux, Terminal } from './terminal.js';
import { TracedHome } from './traced-home.js';

const TALK: Script = {
  'Take your time': [
    says(text('Working.'), bash('sleep 4')),
    says(text('More.'), bash('sleep 4')),
    says(text('Time taken.')),
  ],
};
const SAID = /PostToolUse:Bash says: cc-langfuse: the turn of \d\d:\d\d has used ≈ \$0\.\d+ at list prices/g;

/** Sets a limit that each turn passes, and installs the program with turns that are sent while they run. */
const registerWithBudget: typeof register = async (claude, server) => {
  const path = join(claude.home, '.claude', 'settings.json');
  const settings = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...settings, env: { CC_LANGFUSE_BUDGET: 'turn=0.0001' } }));
  await register(claude, server, ['--live']);
};

test.skipIf(!hasTmux())(
  'a turn that passes its limit says so once while it runs, and the model does not see it',
  async () => {
    const traced = await TracedHome.open(TALK, {}, registerWithBudget);
    const terminal = await Terminal.open(claudeProgram(), traced.claude);
    try {
      await terminal.type('Take your time');
      await terminal.shows(new RegExp(SAID.source));
      expect(await terminal.screen()).not.toContain('Time taken.');
      await terminal.shows('Time taken.');
      await terminal.idle();
      expect((await terminal.screen()).match(SAID)).toHaveLength(1);
      await terminal.type('/exit');
      expect(await terminal.ended()).toBe(0);
      expect(JSON.stringify(traced.claude.api.served.map(({ asked }) => asked))).not.toContain('at list prices');
      await traced.settled();
      expect(traced.differences).toEqual([]);
    } finally {
      await terminal.close();
      await traced.close();
    }
  },
);
