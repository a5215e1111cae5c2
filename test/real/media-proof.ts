import { expect } from 'vitest';
import { fieldsReferringTo } from '../support/media-store.js';
import type { ContentBlock, Message } from './messages-api.js';
import type { TracedHome } from './traced-home.js';

/** Proves that each image and document that was sent to the API is in Langfuse once, linked to where it was seen. */
export function proveMedia({ claude, server }: TracedHome): void {
  const shown = new Set(claude.api.served.flatMap(({ asked }) => asked.messages.flatMap(mediaIn)));
  const stored = [...server.media.stored.values()];
  expect(shown.size).toBe(2);
  expect(new Set(stored.map(({ bytes }) => bytes?.toString('base64')))).toEqual(shown);
  expect(stored.map(({ arrivals, uploadStatus }) => ({ arrivals, uploadStatus }))).toEqual(
    stored.map(() => ({ arrivals: 1, uploadStatus: 200 })),
  );
  for (const { id, fields } of stored) {
    const referring = fieldsReferringTo(id, server.observations);
    expect(referring.size).toBeGreaterThan(1);
    expect(fields).toEqual(referring);
  }
}

function mediaIn({ content }: Pick<Message, 'content'> | ContentBlock): string[] {
  if (typeof content !== 'object') return [];
  return content.flatMap((block) => (block.source?.data === undefined ? mediaIn(block) : [block.source.data]));
}
