import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { listTexts, TextFilter } from '../../../src/commands/sessions/text-filter.js';
import { TextSearch } from '../../../src/commands/sessions/text-search.js';
import { parseJson } from '../../../src/shared/json.js';
import { readOverview, type SessionOverview } from '../../../src/transcript/sessions/overview.js';
import { assistant, jsonLines, SESSION, toolResult, toolUse, user } from '../../support/lines.js';
import { recordings, transcriptsOf } from '../../support/recording.js';
import { removeFolder } from '../../support/remove-folder.js';

let folder: string;
let path: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-search-'));
  path = join(folder, `${SESSION}.jsonl`);
});

afterEach(() => removeFolder(folder));

const EVERYTHING = { mayContain: () => true };

/** What a search finds with the filter, and without it. */
function searchBoth(session: SessionOverview, text: string) {
  const search = (filter?: typeof EVERYTHING) => [
    ...new TextSearch(text, (redacted) => redacted, filter).search(session),
  ];
  return { filtered: search(), all: search(EVERYTHING) };
}

function write(...lines: (object | string)[]): SessionOverview {
  writeFileSync(path, jsonLines(lines));
  const session = readOverview(path);
  if (!session) throw new Error('that is no transcript');
  return session;
}

const PARTS_OF_EACH = 12;
const LENGTHS = [1, 4, 9, 25, 80] as const;

/** Parts of a transcript's texts, of different lengths and with everything that can be in them. */
function listParts(transcript: string): string[] {
  const texts = readFileSync(transcript, 'utf8')
    .split('\n')
    .flatMap((line) => listTexts(parseJson(line)))
    .filter((text) => text !== '');
  return Array.from({ length: PARTS_OF_EACH }, (_, n) => {
    const text = texts[Math.floor((n * texts.length) / PARTS_OF_EACH)] ?? '';
    const start = Math.floor((text.length * n) / (PARTS_OF_EACH + 1));
    return text.slice(start, start + (LENGTHS[n % LENGTHS.length] ?? 1));
  }).filter((part) => part !== '');
}

test.each(recordings())('in $name the same is found as by reading everything', (recording) => {
  for (const session of transcriptsOf(recording).flatMap((each) => readOverview(each) ?? [])) {
    for (const text of listParts(session.path)) {
      const { filtered, all } = searchBoth(session, text);
      expect([text, filtered]).toEqual([text, all]);
    }
  }
});

describe('a text is found', () => {
  const command =
    '<command-name>/fix</command-name>\n<command-message>fix</command-message>\n<command-args>it</command-args>';
  const result = JSON.stringify({ idle: true, result: 'said "so"\n\u00e9t\u00e9' });
  test.each([
    ['of which JSON escapes a part', user('say "hi"\\there\n\tnow'), 'SAY "Hi"\\THERE\n\tn'],
    ['that is nothing but marks', user('is it -> "?"'), '-> "?"'],
    ['in two parts of a command', user(command, { origin: { kind: 'human' } }), '/fix it'],
    ['in a command for the shell', user('<bash-input>ls -l</bash-input>'), '!ls'],
    [
      'in JSON of a teammate',
      user(`<teammate-message teammate_id="a">${result}</teammate-message>`),
      'a: said "so"\nÉTÉ',
    ],
    [
      'in two blocks of a prompt',
      user([
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ]),
      'one\ntwo',
    ],
    ['beyond ASCII', user('Über Straße, Привет, 漢字 🎉'), 'ÜBER STRASSE'.replace('SS', 'ß')],
    ['in Cyrillic', user('Привет'), 'ПРИВЕТ'],
    ['without cases', user('in 漢字 it is'), '漢字'],
    ['with an emoji', user('done 🎉'), '🎉'],
    ['with the sign of Kelvin', user('\u212aelvin'), 'kelvin'],
    ['with a dot above', user('D\u0130YARBAKIR'), 'diyarbakir'.replace('di', 'di\u0307')],
    ['with a dot above, without it', user('D\u0130YARBAKIR'), 'yarbakir'],
    ['that ends with a sigma', user('ΟΔΟΣ 1'), 'οδος'],
    ['that has a sigma', user('ΟΔΟΣΑ'), 'οδοσα'],
    ['with bytes that are no text', user('a\ufffdb'), 'a\ufffdb'],
  ])('%s', (_, line, text) => {
    const { filtered, all } = searchBoth(write(line, assistant('m', 'yes')), text);
    expect(filtered).toMatchObject([{ kind: 'prompt' }]);
    expect(filtered).toEqual(all);
  });

  test.each([
    ['escapes letters', '"p\\u0041th"', 'path'],
    ['escapes what is not ASCII', '"\\u00c9t\\u00e9 \\ud83c\\udf89"', 'été 🎉'],
    ['escapes slashes', '"a\\/b"', 'a/b'],
    ['writes numbers as Python does', '[1e3,2.0]', '1000'],
    ['writes a fraction with a zero', '[1e3,2.50]', '2.5'],
    ['writes a whole number with a fraction', '[2.0,7]', '2'],
    ['writes more digits than a number has', '[12345678901234567890]', '12345678901234567000'],
    ['writes a small fraction', '[0.00000012]', '1.2e-7'],
    ['writes a number that is too large', '[1e999]', 'infin'],
  ])('in the input of a tool, if a program %s', (_, json, text) => {
    const call = JSON.stringify(assistant('m', [toolUse('t', 'Tool', { value: 'HERE' })])).replace('"HERE"', json);
    const { filtered, all } = searchBoth(write(user('q'), call, user([toolResult('t', 'x')])), text);
    expect(filtered).toMatchObject([{ kind: 'tool' }]);
    expect(filtered).toEqual(all);
  });

  test('wherever it is in a large file, whose last line has no end', () => {
    for (let size = 262_100; size < 262_160; size += 1) {
      writeFileSync(path, jsonLines([user('q'), assistant('m1', '')]));
      const before = JSON.stringify(assistant('m2', 'x')).length;
      const filler = JSON.stringify(assistant('m2', 'x'.repeat(size - before)));
      writeFileSync(path, `${filler}\n${JSON.stringify(assistant('m3', 'a needle'))}`, { flag: 'a' });
      expect(new TextFilter('a needle').mayContain(path)).toBe(true);
    }
  });
});

test.each(['sessionId', 'assistant', 'opened', 'ls, b', '77', 'thoughts', 'no such text'])(
  'a file without %j in what is searched need not be read',
  (text) => {
    const attachment = { type: 'opened_file_in_ide', content: 'opened' };
    write(
      { parentUuid: null, attachment, type: 'attachment', uuid: 'u77' },
      user('a and b'),
      assistant('m77', [{ type: 'thinking', thinking: 'thoughts' }, toolUse('t', 'Bash', { command: 'ls' })]),
      user([toolResult('t', 'b')]),
    );
    expect(new TextFilter(text).mayContain(path)).toBe(false);
  },
);

test('an input may be nested as deeply as JSON can be', () => {
  const depth = 20_000;
  const input = `${'{"a":'.repeat(depth)}"a needle"${'}'.repeat(depth)}`;
  const answer = JSON.stringify(assistant('m1', [toolUse('t', 'Bash', '_')])).replace('"_"', input);
  const session = write(user('q'), answer, user([toolResult('t', 'a needle, too')]));
  const { filtered, all } = searchBoth(session, 'a needle');
  expect(all.map(({ tool }) => tool)).toEqual(['Bash']);
  expect(filtered).toEqual(all);
});

test('no other character of ASCII is the lower case of another character', () => {
  const others = Array.from({ length: 0x110000 - 0x80 }, (_, index) => String.fromCodePoint(index + 0x80));
  expect(others.filter((char) => /[\0-\x7f]/.test(char.toLowerCase()))).toEqual(['\u0130', '\u212a']);
  expect(others.findLast((char) => char.toLowerCase() !== char)?.codePointAt(0)).toBeLessThanOrEqual(0x1ffff);
});
