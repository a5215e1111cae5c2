import { asSpan } from './langfuse/otlp-transport.js';
import type { ExportTools } from './session-export.js';

/** Takes all that is sent and brings it nowhere, for whoever only wants to know what would be. */
export const NOTHING_SENT: Pick<ExportTools, 'encode' | 'send' | 'sendScores'> = {
  encode: asSpan,
  send: async ({ length }) => ({ settled: length, dropped: [], failure: undefined }),
  sendScores: async ({ length }) => ({ settled: length, refused: [], failure: undefined }),
};
