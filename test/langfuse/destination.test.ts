import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DestinationConfig, readSettings } from '../../src/config/settings.js';
import type { Destination } from '../../src/langfuse/destination.js';
import { findTarget, openDestination } from '../../src/langfuse/open-destination.js';
import { DESTINATIONS } from '../support/destinations.js';
import { LangfuseServer, langfuseAt, type Misbehaviour } from '../support/langfuse-server.js';
import { send, someOutgoing } from '../support/traces.js';

/** Too late for a second attempt. */
const LATER = { 'retry-after': '60' };
const EVERYTHING = { CC_LANGFUSE_SCORES: 'true', CC_LANGFUSE_MEDIA: 'true' };

test.each(Object.entries(DESTINATIONS))(
  'what the settings allow to be built for %s is what it takes',
  async (_, env) => {
    const { destination: config, scores, media } = await readSettings({ ...env, ...EVERYTHING });
    if (!config) throw new Error('the settings name no destination');
    const destination = openDestination(config, '');
    expect({ scores, media }).toEqual({
      scores: destination.sendScores !== undefined,
      media: destination.uploadMedia !== undefined,
    });
    expect(findTarget(config).langfuse !== undefined).toBe(scores);
    await destination.close();
  },
);

describe('the health of a destination', () => {
  let server: LangfuseServer;
  let destination: Destination;

  beforeEach(async () => {
    server = await LangfuseServer.start();
  });

  afterEach(async () => {
    await destination.close();
    await server.stop();
  });

  async function healthAfter(answer: Misbehaviour | undefined, config: DestinationConfig = langfuseAt(server.url)) {
    destination = openDestination(config, '');
    expect(destination.health).toEqual({ isHealthy: false, hasAnswered: false });
    server.misbehave = () => answer;
    await send(destination, someOutgoing(2), { deadline: Date.now() + 10_000 });
    return destination.health;
  }

  test('is good if it accepts what it is sent', async () => {
    expect(await healthAfter(undefined)).toEqual({ isHealthy: true, hasAnswered: true });
  });

  test('is no trouble if it asks to wait', async () => {
    expect(await healthAfter({ status: 429, headers: LATER })).toEqual({ isHealthy: false, hasAnswered: true });
  });

  test.each([
    [
      'refusal',
      401,
      'Langfuse refused the keys (401) at HOST; make new ones for "cc-langfuse install", or for the plugin',
    ],
    ['outage', 503, 'sending to HOST fails: the server answers 503'],
    ['other', 307, 'sending to HOST fails: the server redirects elsewhere (307); redirects are not followed'],
  ] as const)('is %s after %i', async (kind, status, text) => {
    const trouble = { kind, text: text.replace('HOST', new URL(server.url).host) };
    expect(await healthAfter({ status, headers: LATER })).toEqual({ isHealthy: false, hasAnswered: true, trouble });
  });

  test('is an outage if nobody listens', async () => {
    const trouble = { kind: 'outage', text: '127.0.0.1:9 cannot be reached: ECONNREFUSED' };
    expect(await healthAfter(undefined, langfuseAt('http://127.0.0.1:9'))).toEqual({
      isHealthy: false,
      hasAnswered: false,
      trouble,
    });
  });
});
