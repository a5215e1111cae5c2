import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { buildTurn } from '../../../src/observations/build/turn.js';
import { replaceMissingMedia } from '../../../src/observations/content/media.js';
import type { Observation } from '../../../src/observations/model.js';
import { createRedactor } from '../../../src/observations/redaction/redact.js';
import { assistant, groupTurns, SESSION, text, toolResult, toolUse, user } from '../../support/lines.js';
import { OPTIONS } from '../../support/traces.js';

const PNG = Buffer.from('a picture');
const PDF = Buffer.from('a paper');

function image(bytes = PNG, mediaType = 'image/png') {
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: bytes.toString('base64') } };
}

function document(source: object) {
  return { type: 'document', source };
}

/** What Claude Code writes for a file that a prompt names. */
const attached = {
  parentUuid: 'u1',
  isSidechain: false,
  attachment: {
    type: 'file',
    filename: '/x/a.png',
    content: { type: 'image', file: { base64: PNG.toString('base64'), type: 'image/png', originalSize: 9 } },
    displayPath: 'a.png',
  },
  type: 'attachment',
  uuid: 'a1',
};

const pdf = document({ type: 'base64', media_type: 'application/pdf', data: PDF.toString('base64') });

/** Builds a reference by Langfuse's own rule. */
function referenceTo(bytes: Buffer, mediaType: string): string {
  const id = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  return `@@@langfuseMedia:type=${mediaType}|id=${id}|source=base64_data_uri@@@`;
}

const shownImage = referenceTo(PNG, 'image/png');
const shownPdf = referenceTo(PDF, 'application/pdf');
const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex').slice(0, 16);
const imagePlaceholder = `[image image/png, 9 bytes, sha256 ${hash(PNG)}]`;
const pdfPlaceholder = `[document application/pdf, 7 bytes, sha256 ${hash(PDF)}]`;

function build(lines: readonly object[], options: Partial<typeof OPTIONS> = {}): Observation[] {
  const { all } = groupTurns(lines);
  return all.flatMap((turn) => {
    const { children, root } = buildTurn(turn, { ...OPTIONS, ...options, sessionId: SESSION });
    return [root, ...children];
  });
}

const mediaCounts = (observations: readonly Observation[]) => observations.map(({ media = [] }) => media.length);
const asked = (...content: object[]) => [user(content), assistant('m1', 'nice')];
const read = (result: unknown) => [
  user('go'),
  assistant('m1', [toolUse('t1')]),
  user([toolResult('t1', result)]),
  assistant('m2', 'seen'),
];

describe('an image or a document', () => {
  test('in a prompt becomes a reference, in the turn and in the generation that answers it', () => {
    const [root, generation] = build(asked(text('look'), image(), pdf));
    const content = [text('look'), shownImage, shownPdf];
    expect(root?.input).toEqual([{ role: 'user', content }]);
    expect(generation?.input).toEqual([{ role: 'user', content }]);
  });

  test('in a tool result becomes a reference in its place', () => {
    const [, , tool, next] = build(read([text('before'), image(), text('after'), text('that')]));
    const output = [text('before'), shownImage, text('after\nthat')];
    expect(tool?.output).toEqual(output);
    expect(next?.input).toEqual([{ role: 'tool', name: 'Read', tool_call_id: 't1', content: output }]);
  });

  test.each([
    ['a block', pdf],
    ['a list with one block', [pdf]],
  ])('that is the whole tool result is the whole output: %s', (_, result) => {
    const [, , tool] = build(read(result));
    expect(tool?.output).toBe(shownPdf);
    const missing = new Set([shownPdf]);
    expect(tool && replaceMissingMedia(tool, missing).output).toBe(pdfPlaceholder);
  });

  test('on a line after the result of the tool that read it counts as output of the tool', () => {
    const lines = [
      ...[user('go'), assistant('m1', [toolUse('t1')]), user([toolResult('t1', 'PDF file read: /x/a.pdf (7 bytes)')])],
      ...[
        user([pdf], { isMeta: true, uuid: 'd1' }),
        user([pdf], { isMeta: true, uuid: 'd1' }),
        assistant('m2', 'seen'),
      ],
    ];
    const [root, , , next] = build(lines);
    const result = { role: 'tool', name: 'Read', tool_call_id: 't1', content: 'PDF file read: /x/a.pdf (7 bytes)' };
    expect(next?.input).toEqual([result, { role: 'tool', name: 'Read', content: [shownPdf] }]);
    expect(root?.input).toEqual([{ role: 'user', content: 'go' }]);
    expect(mediaCounts(build(lines))).toEqual([0, 0, 0, 1]);
    expect(mediaCounts(build(lines, { capture: 'no_tool_io' }))).toEqual([0, 0, 0, 0]);
  });

  test('in a message that is typed while Claude works becomes a reference', () => {
    const message = {
      type: 'attachment',
      uuid: 'a1',
      attachment: { type: 'queued_command', prompt: [text('this one'), image()] },
    };
    const [root, event, generation] = build([user('go'), message, assistant('m1', 'ok')]);
    const said = { role: 'user', content: [text('this one'), shownImage] };
    expect(root?.input).toEqual([{ role: 'user', content: 'go' }]);
    expect(event).toMatchObject({ name: 'message while working', input: [said] });
    expect(generation?.input).toEqual([{ role: 'user', content: 'go' }, said]);
  });

  test('that a prompt names is shown with the prompt', () => {
    const [root, generation] = build([user('look at @a.png', { uuid: 'u1' }), attached, assistant('m1', 'nice')]);
    const content = [text('look at @a.png'), shownImage];
    expect(root?.input).toEqual([{ role: 'user', content }]);
    expect(generation?.input).toEqual([{ role: 'user', content }]);
  });

  test('that a prompt names is shown once even if its lines were written twice', () => {
    const prompt = user('look at @a.png', { uuid: 'u1' });
    const [first, , second] = build([
      ...[prompt, attached, prompt, attached, assistant('m1', 'nice')],
      ...[user('and now?', { uuid: 'u2' }), prompt, attached, assistant('m2', 'what?')],
    ]);
    expect(first?.input).toEqual([{ role: 'user', content: [text('look at @a.png'), shownImage] }]);
    expect(second?.input).toEqual([{ role: 'user', content: 'and now?' }]);
  });

  test.each([
    ['that is pasted with a command', [user([image(), text('Look at it.')], { isMeta: true, uuid: 'u2' })]],
    ['that a command names', [user([text('Look at it.')], { isMeta: true, uuid: 'u2' }), attached]],
  ])('%s is shown with the command', (_, lines) => {
    const command = '<command-message>review</command-message>\n<command-name>/review</command-name>';
    const earlier = [user('go', { uuid: 'u0' }), assistant('m0', 'gone')];
    const [, , root, generation] = build([
      ...earlier,
      user(command, { uuid: 'u1' }),
      ...lines,
      assistant('m1', 'nice'),
    ]);
    const content = [text('/review'), shownImage];
    expect(root?.input).toEqual([{ role: 'user', content }]);
    expect(generation?.input).toEqual([{ role: 'user', content }]);
  });

  test('is listed in the media of an observation, with the field that shows it', () => {
    const [, , tool, next] = build(read([image(), image()]));
    const describeMedia = (observation: Observation | undefined) =>
      observation?.media?.map(({ field, contentType, length, reference, bytes }) => ({
        ...{ field, contentType, length, reference },
        bytes: String(bytes()),
      }));
    const media = { contentType: 'image/png', length: 9, reference: referenceTo(PNG, 'image/png'), bytes: 'a picture' };
    expect(describeMedia(tool)).toEqual([
      { ...media, field: 'output' },
      { ...media, field: 'output' },
    ]);
    expect(describeMedia(next)).toEqual([
      { ...media, field: 'input' },
      { ...media, field: 'input' },
    ]);
    expect(build(asked(text('none')))[0]).not.toHaveProperty('media');
  });

  test('that is a text is redacted', () => {
    const secret = `sk-ant-api03-${'a1B2'.repeat(20)}`;
    const source = { type: 'text', media_type: 'text/plain', data: `the key is ${secret}` };
    const [root] = build(asked(document(source)), { redact: createRedactor([]) });
    expect(root?.media?.map(({ bytes }) => String(bytes()))).toEqual(['the key is [redacted]']);
    expect(root?.input).toEqual([
      {
        role: 'user',
        content: [referenceTo(Buffer.from('the key is [redacted]'), 'text/plain')],
      },
    ]);
  });

  test('keeps its reference even if redaction rules and the limit would change it', () => {
    const options = { redact: createRedactor([(words) => words.replace(/Media|png|Z/g, '*')]), maxChars: 60 };
    const [root] = build(asked(text('Z'.repeat(100)), image()), options);
    expect(root?.input).toMatchObject([{ content: [{ type: 'text' }, shownImage] }]);
    expect(root?.media).toHaveLength(1);
  });

  test('that is beyond the limit is not listed for upload', () => {
    const words = Array.from({ length: 400 }, (_, n) => [image(Buffer.from(`picture ${n}`)), text('y'.repeat(100))]);
    const [root] = build(asked(...words.flat()), { maxChars: 1_000 });
    const shown = JSON.stringify(root?.input).match(/@@@langfuseMedia/g)?.length ?? 0;
    expect(shown).toBeGreaterThan(0);
    expect(shown).toBeLessThan(400);
    expect(root?.media).toHaveLength(shown);
  });
});

describe('a placeholder with type, size and hash', () => {
  test('replaces each image and document if media is off', () => {
    const options = { media: false };
    expect(build(asked(text('look'), image()), options)[0]?.input).toEqual([
      { role: 'user', content: `look\n${imagePlaceholder}` },
    ]);
    const [, , tool, next] = build(read([text('a'), pdf, text('b')]), options);
    expect(tool).toMatchObject({ output: `a\n${pdfPlaceholder}\nb` });
    expect(next?.input).toEqual([
      { role: 'tool', name: 'Read', tool_call_id: 't1', content: `a\n${pdfPlaceholder}\nb` },
    ]);
    expect(tool).not.toHaveProperty('media');
  });

  test('replaces what could not be uploaded, and nothing else', () => {
    const [root] = build(asked(text('look'), image(), pdf));
    const [nothing, some, all] = [
      [],
      [referenceTo(PDF, 'application/pdf')],
      root?.media?.map((each) => each.reference),
    ].map((missing = []) => root && replaceMissingMedia(root, new Set(missing)));
    expect(nothing).toEqual(root);
    expect(some?.input).toEqual([{ role: 'user', content: [text('look'), shownImage, text(pdfPlaceholder)] }]);
    expect(some?.media?.map(({ contentType }) => contentType)).toEqual(['image/png']);
    expect(all?.input).toEqual([{ role: 'user', content: `look\n${imagePlaceholder}\n${pdfPlaceholder}` }]);
    expect(all?.media).toEqual([]);
  });

  test('replaces only references, whatever else the lists of an observation contain', () => {
    const [root] = build(asked(text('look'), image()));
    const examples = [{ data: { toString: 1 } }, 'x', [{ data: 'x' }]];
    const input = [{ role: 'system', tools: [{ name: 't', parameters: { examples } }] }];
    const missing = new Set([referenceTo(PNG, 'image/png')]);
    expect(root && replaceMissingMedia({ ...root, input }, missing).input).toEqual(input);
  });

  test('makes a tool output the text that it would be with media off', () => {
    const [, , tool] = build(read([text('a'), pdf]));
    expect(tool && replaceMissingMedia(tool, new Set([referenceTo(PDF, 'application/pdf')])).output).toBe(
      `a\n${pdfPlaceholder}`,
    );
  });
});

describe('an image block is replaced by its type and size', () => {
  test.each([
    [
      'if its data is not base64',
      { type: 'base64', media_type: 'image/png', data: '[3092 characters]' },
      '[image image/png, 12 bytes]',
    ],
    ['if its data is empty', { type: 'base64', media_type: 'image/png', data: '' }, '[image image/png, 0 bytes]'],
    ['if it is at a URL', { type: 'url', url: 'https://a.example/x.png' }, '[image]'],
    ['if its media type is malformed', { type: 'base64', media_type: 'image|id=1@@@', data: 'QUJD' }, '[image]'],
    ['if it has no media type', { type: 'base64', data: 'QUJD' }, '[image]'],
    ['if its source is not an object', 'QUJD', '[image]'],
  ])('%s', (_, source, word) => {
    const [root] = build(asked(text('look'), { type: 'image', source }));
    expect(root?.input).toEqual([{ role: 'user', content: `look\n${word}` }]);
    expect(root).not.toHaveProperty('media');
  });
});

describe('the setting capture', () => {
  test('no_tool_io excludes images in tool results, but not those in prompts', () => {
    expect(mediaCounts(build(read([image()])))).toEqual([0, 0, 1, 1]);
    expect(mediaCounts(build(read([image()]), { capture: 'no_tool_io' }))).toEqual([0, 0, 0, 0]);
    expect(mediaCounts(build(asked(image()), { capture: 'no_tool_io' }))).toEqual([1, 1]);
  });

  test('metadata excludes all images', () => {
    expect(mediaCounts(build(asked(image()), { capture: 'metadata' }))).toEqual([0, 0]);
  });
});
