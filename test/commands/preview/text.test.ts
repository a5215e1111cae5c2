import { describe, expect, test } from 'vitest';
import { contentToText, messagesText } from '../../../src/commands/preview/text.js';

const image = {
  type: 'image_url',
  image_url: { url: '@@@langfuseMedia:type=image/png|id=x|source=base64_data_uri@@@' },
};
const paper = { type: 'file', data: '@@@langfuseMedia:type=application/pdf|id=y|source=base64_data_uri@@@' };
const text = { type: 'text', text: 'look' };

describe('content in words', () => {
  test('is its text, and a word for each image and document', () => {
    expect(contentToText('look')).toBe('look');
    expect(contentToText([text, image, paper])).toBe('look\n[image/png]\n[application/pdf]');
    expect(
      messagesText([
        { role: 'user', content: [text, image] },
        { role: 'user', content: 'again' },
      ]),
    ).toBe('look\n[image/png]\nagain');
  });

  test.each([
    ['a number', 7],
    ['a record', { type: 'text' }],
    ['a part that is none', [text, { type: 'hologram' }]],
    ['an image elsewhere', [{ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }]],
    ['a reference that is no text', [{ type: 'file', data: { toString: 1 } }]],
  ])('is none for %s', (_, content) => expect(contentToText(content)).toBeUndefined());
});
