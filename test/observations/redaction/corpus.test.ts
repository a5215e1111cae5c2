import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { MARKED_TOKENS, TOKENS } from '../../../src/observations/redaction/tokens.js';
import { HARMLESS, SECRET_TOKENS, SECRETS, SURROUNDINGS } from './corpus.js';

const redact = createRedactor([]);
const plain = (marked: string) => marked.replaceAll(/[«»]/g, '');
const redacted = (marked: string) => marked.replaceAll(/«[^»]*»/g, '[redacted]');
/** As it is in a file of JSON lines. */
const escaped = (text: string) => JSON.stringify({ text: `\n${text}\n` });

function expectRedacted(cases: readonly { before: string; after: string }[], where: string): void {
  const results = cases.map(({ before, after }) => ({ after, got: redact(before) }));
  const missed = results.filter(({ after, got }) => got !== after);
  console.info(`redacted ${where}: ${results.length - missed.length} of ${results.length} forms of secrets`);
  expect(missed.map(({ got }) => got)).toEqual(missed.map(({ after }) => after));
}

test('every secret of the corpus is redacted, and nothing around it', () => {
  const cases = SECRETS.map((marked) => ({ before: plain(marked), after: redacted(marked) }));
  expectRedacted(cases, 'as they are');
});

test('every secret of the corpus is redacted in JSON, which stays valid', () => {
  const cases = SECRETS.map((marked) => ({ before: escaped(plain(marked)), after: escaped(redacted(marked)) }));
  expectRedacted(cases, 'in JSON');
});

test('every form of a token is redacted in all that may surround it', () => {
  const cases = SURROUNDINGS.flatMap(([before, after]) =>
    SECRET_TOKENS.map((token) => ({ before: before + token + after, after: `${before}[redacted]${after}` })),
  );
  expectRedacted(cases, 'whatever is around them');
});

const PATTERNS = [...TOKENS, ...MARKED_TOKENS.map(({ token }) => token.source)];

test('every pattern of a token has a sample in the corpus', () => {
  const isMatched = (pattern: string) =>
    SECRET_TOKENS.some((token) => new RegExp(pattern).exec(token)?.[0].length === token.length);
  expect(PATTERNS.filter((pattern) => !isMatched(pattern))).toEqual([]);
});

test('every quantifier in the pattern of a token has an upper bound', () => {
  const withoutCharacters = (pattern: string) => pattern.replaceAll(/\\./g, '').replaceAll(/\[[^\]]*\]/g, '');
  expect(PATTERNS.filter((pattern) => /[*+]|\{\d+,\}/.test(withoutCharacters(pattern)))).toEqual([]);
});

test('what is redacted is not changed again', () => {
  const texts = [
    ...SECRETS.flatMap((marked) => [redacted(marked), escaped(redacted(marked))]),
    ...SURROUNDINGS.map(([before, after]) => `${before}[redacted]${after}`),
  ];
  expect(texts.map(redact)).toEqual(texts);
});

test('no harmless text of the corpus is changed, in JSON neither', () => {
  const texts = [...HARMLESS, ...HARMLESS.map(escaped)];
  const changed = texts.filter((text) => redact(text) !== text);
  console.info(`changed: ${changed.length} of ${texts.length} harmless texts`);
  expect(changed.map(redact)).toEqual(changed);
});
