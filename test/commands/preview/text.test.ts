import { describe, expect, test } from 'vitest';
import { contentToText, messagesToText } from '../../../src/commands/preview/text.js';

const image = '@@@langfuseMedia:type=image/png|id=x|source=base64_data_uri@@@';
const paper = '@@@langfuseMedia:type=application/pdf|id=y|source=base64_data_uri@@@';
const text = { type: 'text', text: 'look' };

describe('contentToText and messagesToText', () => {
  test('keep text and name the type of each image and document', () => {
    expect(contentToText('look')).toBe('look');
    expect(contentToText(image)).toBe('[image/png]');
    expect(contentToText([text, image, paper])).toBe('look\n[image/png]\n[application/pdf]');
    expect(
      messagesToText([
        { role: 'user', content: [text, image] },
        { role: 'user', content: 'again' },
      ]),
    ).toBe('look\n[image/png]\nagain');
  });

  test('show the data that is an answer as JSON', () => {
    expect(messagesToText({ role: 'assistant', content: { color: 'red' } })).toBe('{"color":"red"}');
  });

  test.each([
    ['a number', 7],
    ['a record', { type: 'text' }],
    ['a part of an unknown type', [text, { type: 'hologram' }]],
    ['an image on another server', [{ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }]],
    ['a text that is not a string', [{ type: 'text', text: { toString: 1 } }]],
  ])('return undefined for %s', (_, content) => expect(contentToText(content)).toBeUndefined());
});
