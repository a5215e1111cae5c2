import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { without, withValue } from '../../../src/commands/setup/json-edit.js';
import { parseClaudeSettings } from '../../../src/config/claude-settings.js';
import type { Json } from '../../../src/shared/json.js';

const lines = (...all: string[]) => `${all.join('\n')}\n`;

describe('a value is put', () => {
  test.each([
    [
      'behind the last, in its indentation',
      lines('{', '    "b": 1', '}'),
      lines('{', '    "b": 1,', '    "a": [', '        1', '    ]', '}'),
    ],
    [
      'with tabs where there are tabs',
      lines('{', '\t"b": 1', '}'),
      lines('{', '\t"b": 1,', '\t"a": [', '\t\t1', '\t]', '}'),
    ],
    ['behind a trailing comma', lines('{', '  "b": 1,', '}'), lines('{', '  "b": 1,', '  "a": [', '    1', '  ]', '}')],
    [
      'below the comment that belongs to the last',
      lines('{', '  "b": 1 // why', '  // "c": 2', '}'),
      lines('{', '  "b": 1, // why', '  "a": [', '    1', '  ]', '  // "c": 2', '}'),
    ],
    [
      'not into a comment that goes on',
      '{\n  "b": 1 /* a\n b */\n}',
      '{\n  "b": 1,\n  "a": [\n    1\n  ] /* a\n b */\n}',
    ],
    [
      'behind comments on its line',
      '{\n  "b": 1 /* c */ // d\n}',
      '{\n  "b": 1, /* c */ // d\n  "a": [\n    1\n  ]\n}',
    ],
    ['before what closes on its line', '{\n  "b": 1}', '{\n  "b": 1,\n  "a": [\n    1\n  ]}'],
    ['on the one line that there is', '{"b":[1, 2]}', '{"b":[1, 2],"a":[1]}'],
    ['into an empty object', '{}', '{\n  "a": [\n    1\n  ]\n}'],
    ['into an empty object of two lines', '{\n}\n', '{\n  "a": [\n    1\n  ]\n}\n'],
    ['into an empty file', '', '{\n  "a": [\n    1\n  ]\n}\n'],
    [
      'with the file’s own ends of lines',
      '{\r\n  "b": 1\r\n}\r\n',
      '{\r\n  "b": 1,\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n',
    ],
  ])('%s', (_, before, after) => expect(withValue(before, ['a'], [1])).toBe(after));

  test('in the place of another, which alone changes', () => {
    const text = lines('{ // one', '  "a":   1 , "b":[ 1,2 ],', '  "c": { "d":null /* two */ }', '}');
    expect(withValue(text, ['a'], 'x')).toBe(text.replace('1 ,', '"x" ,'));
    expect(withValue(text, ['b', 1], 3)).toBe(text.replace('1,2', '1,3'));
    expect(withValue(text, ['c', 'd'], true)).toBe(text.replace('null', 'true'));
  });

  test('where the path has to be made', () => {
    expect(withValue('{\n  "b": 1\n}', ['hooks', 'Stop', 0, 'x'], 1)).toBe(
      '{\n  "b": 1,\n  "hooks": {\n    "Stop": [\n      {\n        "x": 1\n      }\n    ]\n  }\n}',
    );
  });

  test('beside others on their line', () => {
    expect(withValue('{\n  "env": { "A": "b" }\n}', ['env', 'C'], 'd')).toBe('{\n  "env": { "A": "b", "C": "d" }\n}');
  });

  test('of a key that stands twice the last is the one that counts', () => {
    expect(withValue('{"a":1,"a":2}', ['a'], 3)).toBe('{"a":1,"a":3}');
  });
});

describe('a value is taken out', () => {
  test.each([
    ['with its line', lines('{', '  "a": {', '    "x": 1', '  },', '  "b": 2', '}'), lines('{', '  "b": 2', '}')],
    [
      'with the comma before it, where it is the last',
      lines('{', '  "b": 2, // two', '  "a": 1', '}'),
      lines('{', '  "b": 2 // two', '}'),
    ],
    [
      'not with a comment behind it',
      lines('{', '  "a": 1, // one', '  "b": 2', '}'),
      lines('{', '   // one', '  "b": 2', '}'),
    ],
    ['from before others on its line', '{ "a": 1, "b": 2 }', '{ "b": 2 }'],
    ['from behind others on their line', '{ "b": 2, "a": 1 }', '{ "b": 2 }'],
    ['from between others', '{"b":1,"a":2,"c":3}', '{"b":1,"c":3}'],
    ['where commas come first', '{ "b": 2\n, "a": 1\n}', '{ "b": 2\n\n}'],
    ['alone', '{\n  "a": 1\n}\n', '{}\n'],
    ['alone but for a comment', '{\n  // mine\n  "a": 1\n}\n', '{\n  // mine\n}\n'],
    ['from a list with a trailing comma', '{\n  "b": 1,\n  "a": 2,\n}\n', '{\n  "b": 1,\n}\n'],
    ['with the file’s own ends of lines', '{\r\n  "a": 1,\r\n  "b": 2\r\n}\r\n', '{\r\n  "b": 2\r\n}\r\n'],
  ])('%s', (_, before, after) => expect(without(before, ['a'])).toBe(after));

  test('not where there is none', () => {
    expect(without('{"b":1}', ['a'])).toBe('{"b":1}');
    expect(without('', ['a'])).toBe('');
  });
});

// What reads settings leaves out a key of this name; what edits them does not look into values.
const values = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__"'));
const json = fc.dictionary(fc.stringMatching(/^[b-z]{1,3}$/), fc.oneof(values, fc.array(fc.integer())), {
  noNullPrototype: true,
});
const layouts = fc.constantFrom(
  (value: unknown) => JSON.stringify(value),
  (value: unknown) => JSON.stringify(value, null, 2),
  (value: unknown) => `${JSON.stringify(value, null, '\t')}\n`,
  (value: unknown) => JSON.stringify(value, null, 4).replaceAll('\n', '\r\n'),
  (value: unknown) =>
    JSON.stringify(value, null, 2)
      .replaceAll(/(?<=\d|null|true|false)$/gm, ' // why')
      .replaceAll('{\n', '{\n\n'),
);
const settingsOf = (text: string) => {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : content;
};

test('whatever the file: what is put is there, the rest is as it was, and taken out again not a byte differs', () => {
  fc.assert(
    fc.property(json, layouts, values, (before, layout, value) => {
      const text = layout(before);
      const put = withValue(text, ['a'], value as Json);
      expect(settingsOf(put)).toEqual({ ...(settingsOf(text) as object), a: JSON.parse(JSON.stringify(value)) });
      expect(without(put, ['a'])).toBe(text);
    }),
  );
});

test('whatever is taken out, the rest stays', () => {
  fc.assert(
    fc.property(json, layouts, fc.nat(), (before, layout, number) => {
      const names = Object.keys(before);
      const name = names[number % Math.max(1, names.length)] ?? 'a';
      const text = layout(before);
      const { [name]: _, ...rest } = settingsOf(text) as { [name: string]: unknown };
      expect(settingsOf(without(text, [name]))).toEqual(rest);
    }),
  );
});
