import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { TOKEN_KINDS } from '../../../src/transcript/file/token-kinds.js';

test('each kind of tokens has a colour on the preview page', () => {
  const style = readFileSync(new URL('../../../preview-page/colours.css', import.meta.url), 'utf8');
  expect(TOKEN_KINDS.filter((kind) => !style.includes(`[data-kind="${kind}"]`))).toEqual([]);
});
