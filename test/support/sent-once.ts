import { expect } from 'vitest';
import type { LangfuseServer } from './langfuse-server.js';

/** Expects that the server has observations and has received each of them once. A failure lists the others. */
export function expectEachSentOnce(server: LangfuseServer): void {
  expectEachSent(server, 1);
}

export function expectEachSent(server: LangfuseServer, expectedTimes: number): void {
  const sent = server.observations.map((observation) => {
    const { type, name, traceId, id } = observation;
    return { observation: `${type} ${name}`, traceId, id, times: server.timesSent(observation) };
  });
  expect(sent).not.toEqual([]);
  expect(sent.filter(({ times }) => times !== expectedTimes)).toEqual([]);
}
