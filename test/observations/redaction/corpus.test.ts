import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { HARMLESS, SECRETS } from './corpus.js';

const redact = createRedactor([]);

test('every secret of the corpus is redacted, and nothing around it', () => {
  const results = SECRETS.map((marked) => {
    const expected = marked.replaceAll(/«[^»]*»/g, '[redacted]');
    return { expected, got: redact(marked.replaceAll(/[«»]/g, '')) };
  });
  const missed = results.filter(({ expected, got }) => got !== expected);
  console.info(`redacted: ${results.length - missed.length} of ${results.length} forms of secrets`);
  expect(missed.map(({ got }) => got)).toEqual(missed.map(({ expected }) => expected));
});

test('no harmless text of the corpus is changed', () => {
  const changed = HARMLESS.filter((text) => redact(text) !== text);
  console.info(`changed: ${changed.length} of ${HARMLESS.length} harmless texts`);
  expect(changed.map(redact)).toEqual(changed);
});
