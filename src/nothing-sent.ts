import type { ExportTools } from './session-export.js';

/** Takes all that is sent and brings it nowhere, for whoever only wants to know what would be. */
export const NOTHING_SENT: Pick<ExportTools, 'send' | 'sendScores'> = {
  send: async ({ length }) => ({ settled: length, dropped: [], failure: undefined }),
  sendScores: async ({ length }) => ({ settled: length, refused: [], failure: undefined }),
};
