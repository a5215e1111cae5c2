import { describe, expect, test } from 'vitest';
import { cutContent } from '../../../src/observations/content/cut.js';

const reference = `@@@langfuseMedia:type=image/png|id=${'a'.repeat(22)}|source=base64_data_uri@@@`;

describe('cutContent', () => {
  test('cuts input and output each to a length, and notes how long they were', () => {
    const content = {
      input: [{ role: 'user', content: 'x'.repeat(500) }],
      output: 'y'.repeat(300),
      metadata: { cwd: 'z'.repeat(200) },
    };
    expect(cutContent(content, 104)).toEqual({
      input: [{ role: 'user', content: `${'x'.repeat(89)}… [411 more characters]` }],
      output: `${'y'.repeat(104)}… [196 more characters]`,
      metadata: { cwd: 'z'.repeat(200), input_full_chars: 504, output_full_chars: 300 },
    });
  });

  test('keeps what is short enough, and the figures of an earlier cut', () => {
    const content = { input: 'x'.repeat(500), output: null, metadata: { input_full_chars: 900_000 } };
    expect(cutContent(content, 1_000)).toEqual(content);
    expect(cutContent(content, 100).metadata).toEqual({ input_full_chars: 900_000 });
  });

  test('cuts no reference to an image, of which a part would be worth nothing', () => {
    const content = {
      input: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(500) }, reference] }],
      metadata: {},
    };
    expect(JSON.stringify(cutContent(content, 100).input)).toContain(JSON.stringify(reference));
  });

  test('to 0 leaves only marks of input and output, and the beginnings of texts in the metadata', () => {
    const content = {
      input: [{ role: 'user', content: 'hi' }],
      output: 'yes',
      metadata: { cwd: 'z'.repeat(200), count: 3 },
    };
    expect(cutContent(content, 0)).toEqual({
      input: '… [32 more characters]',
      output: '… [3 more characters]',
      metadata: {
        input_full_chars: 6,
        output_full_chars: 3,
        cwd: `${'z'.repeat(40)}… [160 more characters]`,
        count: 3,
      },
    });
  });
});
