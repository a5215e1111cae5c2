import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { removeValue, setValue } from '../../../src/commands/setup/json-edit.js';
import { parseClaudeSettings } from '../../../src/config/claude-settings.js';
import type { Json } from '../../../src/shared/json.js';

const lines = (...all: string[]) => `${all.join('\n')}\n`;

describe('setValue puts a new value', () => {
  test.each([
    [
      'after the last one, with its indentation',
      lines('{', '    "b": 1', '}'),
      lines('{', '    "b": 1,', '    "a": [', '        1', '    ]', '}'),
    ],
    [
      'with tabs if the file has tabs',
      lines('{', '\t"b": 1', '}'),
      lines('{', '\t"b": 1,', '\t"a": [', '\t\t1', '\t]', '}'),
    ],
    ['before a bracket on the last value’s line', '{\n  "b": 1}', '{\n  "b": 1,\n  "a": [\n    1\n  ]}'],
    ['on the same line if there is only one', '{"b":[1, 2]}', '{"b":[1, 2],"a":[1]}'],
    ['into an empty object', '{}', '{\n  "a": [\n    1\n  ]\n}'],
    ['into an empty object of two lines', '{\n}\n', '{\n  "a": [\n    1\n  ]\n}\n'],
    ['into an empty file', '', '{\n  "a": [\n    1\n  ]\n}\n'],
    [
      'with the file’s own line breaks',
      '{\r\n  "b": 1\r\n}\r\n',
      '{\r\n  "b": 1,\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n',
    ],
  ])('%s', (_, before, after) => expect(setValue(before, ['a'], [1])).toBe(after));

  test('setValue replaces a value and changes nothing else', () => {
    const text = lines('{ ', '  "a":   1 , "b":[ 1,2 ],', '  "c": { "d":null  }', '}');
    expect(setValue(text, ['a'], 'x')).toBe(text.replace('1 ,', '"x" ,'));
    expect(setValue(text, ['b', 1], 3)).toBe(text.replace('1,2', '1,3'));
    expect(setValue(text, ['c', 'd'], true)).toBe(text.replace('null', 'true'));
  });

  test('setValue creates the path that is missing', () => {
    expect(setValue('{\n  "b": 1\n}', ['hooks', 'Stop', 0, 'x'], 1)).toBe(
      '{\n  "b": 1,\n  "hooks": {\n    "Stop": [\n      {\n        "x": 1\n      }\n    ]\n  }\n}',
    );
  });

  test('setValue adds to an object on one line', () => {
    expect(setValue('{\n  "env": { "A": "b" }\n}', ['env', 'C'], 'd')).toBe('{\n  "env": { "A": "b", "C": "d" }\n}');
  });

  test('setValue changes the last one if a key is there twice', () => {
    expect(setValue('{"a":1,"a":2}', ['a'], 3)).toBe('{"a":1,"a":3}');
  });
});

describe('removeValue removes a value', () => {
  test.each([
    ['with its line', lines('{', '  "a": {', '    "x": 1', '  },', '  "b": 2', '}'), lines('{', '  "b": 2', '}')],
    [
      'with the comma before it, if it is the last',
      lines('{', '  "b": 2, // two', '  "a": 1', '}'),
      lines('{', '  "b": 2 // two', '}'),
    ],
    [
      'but not a comment after it',
      lines('{', '  "a": 1, // one', '  "b": 2', '}'),
      lines('{', '   // one', '  "b": 2', '}'),
    ],
    ['before others on its line', '{ "a": 1, "b": 2 }', '{ "b": 2 }'],
    ['after others on their line', '{ "b": 2, "a": 1 }', '{ "b": 2 }'],
    ['between others', '{"b":1,"a":2,"c":3}', '{"b":1,"c":3}'],
    ['if commas are at the start of lines', '{ "b": 2\n, "a": 1\n}', '{ "b": 2\n\n}'],
    ['that is alone', '{\n  "a": 1\n}\n', '{}\n'],
    ['that is alone but for a comment', '{\n  // mine\n  "a": 1\n}\n', '{\n  // mine\n}\n'],
    ['from a list with a trailing comma', '{\n  "b": 1,\n  "a": 2,\n}\n', '{\n  "b": 1,\n}\n'],
    ['with the file’s own line breaks', '{\r\n  "a": 1,\r\n  "b": 2\r\n}\r\n', '{\r\n  "b": 2\r\n}\r\n'],
  ])('%s', (_, before, after) => expect(removeValue(before, ['a'])).toBe(after));

  test('removeValue changes nothing if there is no such value', () => {
    expect(removeValue('{"b":1}', ['a'])).toBe('{"b":1}');
    expect(removeValue('', ['a'])).toBe('');
  });
});

// The reader leaves out a key of this name; the editor does not look into values.
const values = fc.jsonValue().filter((value) => !JSON.stringify(value).includes('"__proto__"'));
const json = fc.dictionary(fc.stringMatching(/^[b-z]{1,3}$/), fc.oneof(values, fc.array(fc.integer())), {
  noNullPrototype: true,
});
const strictLayouts = [
  (value: unknown) => JSON.stringify(value),
  (value: unknown) => JSON.stringify(value, null, 2),
  (value: unknown) => `${JSON.stringify(value, null, '\t')}\n`,
  (value: unknown) => JSON.stringify(value, null, 4).replaceAll('\n', '\r\n'),
];
const withComments = (value: unknown) =>
  JSON.stringify(value, null, 2)
    .replaceAll(/(?<=\d|null|true|false)$/gm, ' // why')
    .replaceAll('{\n', '{\n\n');
const settingsOf = (text: string) => {
  const content = parseClaudeSettings(text);
  return content.kind === 'settings' ? content.settings : content;
};

test('in any layout a new value is there, the rest is unchanged, and removing it restores every byte', () => {
  fc.assert(
    fc.property(json, fc.constantFrom(...strictLayouts), values, (before, layout, value) => {
      const text = layout(before);
      const put = setValue(text, ['a'], value as Json);
      expect(settingsOf(put)).toEqual({ ...(settingsOf(text) as object), a: JSON.parse(JSON.stringify(value)) });
      expect(removeValue(put, ['a'])).toBe(text);
    }),
  );
});

test('removing any value leaves the rest unchanged, with comments, too', () => {
  fc.assert(
    fc.property(json, fc.constantFrom(...strictLayouts, withComments), fc.nat(), (before, layout, number) => {
      const names = Object.keys(before);
      const name = names[number % Math.max(1, names.length)] ?? 'a';
      const text = layout(before);
      const { [name]: _, ...rest } = settingsOf(text) as { [name: string]: unknown };
      expect(settingsOf(removeValue(text, [name]))).toEqual(rest);
    }),
  );
});
