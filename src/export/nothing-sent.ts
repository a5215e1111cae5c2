import { asSpan } from '../langfuse/otlp/otlp-transport.js';
import type { Delivery } from './delivery.js';

/** Takes all that is sent and brings it nowhere, for whoever only wants to know what would be. */
export const NOTHING_SENT: Delivery = {
  encode: asSpan,
  send: async ({ length }) => ({ settled: length, dropped: [], failure: undefined }),
  bringMedia: async () => ({ missing: new Set(), failure: undefined }),
  sendScores: async ({ length }) => ({ settled: length, refused: [], failure: undefined }),
};
