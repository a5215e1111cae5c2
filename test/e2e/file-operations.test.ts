import { describe, expect, test } from 'vitest';
import { recordStop } from '../support/file-operations.js';

// Counted are the program's own calls of node:fs, each once, however many system calls it makes. Not counted is what Node does to
// load modules. Below ~/.claude are the user's settings, the transcript and the state; the program itself is elsewhere here.

/** How many there may be: those that name a path below ~/.claude, and all, those of descriptors included. */
const MOST = {
  hook: { byPath: 40, all: 85, forOneSettingsFile: 1 },
  worker: { byPath: 45, all: 85, forOneSettingsFile: 1 },
};

describe.each(['hook', 'worker'] as const)('a Stop for which `%s` is started', (command) => {
  test('costs few file operations', async () => {
    const { byPath, all, settings, turns } = await recordStop(command);
    const most = MOST[command];
    expect(turns).toEqual(['Turn 1', 'Turn 2']);
    expect(settings.get('~/.claude/settings.json')).toBeDefined();
    const list = (operations: typeof all) => operations.map(({ name, path }) => `${name} ${path}`).join('\n');
    expect(byPath.length, list(byPath)).toBeLessThanOrEqual(most.byPath);
    expect(all.length, list(all)).toBeLessThanOrEqual(most.all);
    for (const operations of settings.values())
      expect(operations.length, list(operations)).toBeLessThanOrEqual(most.forOneSettingsFile);
  });
});
