import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  ASSUMED,
  averageTurn,
  measureLongTurns,
  measureRecordings,
  peakTurnsPerSecond,
  type TurnAverages,
} from '../support/sizing.js';

const PAGE = readFileSync(new URL('../../docs/fleet.md', import.meta.url), 'utf8');
const DEVELOPERS = 1_000;

/** Two digits are all that an average is worth. */
const round = (value: number) => Number(value.toPrecision(2)).toLocaleString('en');
const size = (bytes: number) => {
  if (bytes >= 1e9) return `${round(bytes / 1e9)} GB`;
  return bytes >= 1e6 ? `${round(bytes / 1e6)} MB` : `${round(bytes / 1e3)} KB`;
};

function formatRows(turns: readonly TurnAverages[]): string {
  const rows: [string, (turn: TurnAverages) => string][] = [
    ['observations per turn', ({ observations }) => round(observations)],
    ['size of a turn', ({ bytes }) => size(bytes)],
    ['turns, and requests, per day', () => round(perDay)],
    ['observations per day', ({ observations }) => round(perDay * observations)],
    ['size per day', ({ bytes }) => size(perDay * bytes)],
    ['turns per second, in the busiest hour', () => round(peak)],
    ['requests per minute, in the busiest hour', () => round(peak * 60)],
    ['size per second, in the busiest hour', ({ bytes }) => size(peak * bytes)],
    ['queue after an hour of outage, the busiest', ({ bytes }) => size(3_600 * peak * bytes)],
    ['queue after a day of outage', ({ bytes }) => size(perDay * bytes)],
    ['units that Langfuse bills, per day', ({ observations }) => round(perDay * (observations + 1))],
    [
      `the same per month of ${ASSUMED.workdaysPerMonth} days`,
      ({ observations }) => round(ASSUMED.workdaysPerMonth * perDay * (observations + 1)),
    ],
  ];
  return rows.map(([name, format]) => `| ${[name, ...turns.map(format)].join(' | ')} |`).join('\n');
}

const perDay = DEVELOPERS * ASSUMED.turnsPerDay;
const peak = peakTurnsPerSecond(DEVELOPERS);

test('the page about fleets has the averages of the recordings, and what follows from them', async () => {
  const recorded = await measureRecordings();
  const rows = formatRows([averageTurn(recorded), averageTurn(await measureLongTurns())]);
  expect(PAGE.match(/^\| observations per turn.*?(?=\n\n)/ms)?.[0]).toBe(rows);
  const { sessions, turns, observations, bytes, compressedBytes } = recorded;
  expect(PAGE.replaceAll(/\s+/g, ' ')).toContain(
    `about ${round(sessions)} sessions with ${round(turns)} turns, ${round(turns / sessions)} per session. They become ` +
      `${round(observations)} observations of ${size(bytes / observations)} each, which gzip makes ${round(bytes / compressedBytes)} times smaller.`,
  );
});

test('the page about fleets states what is assumed', () => {
  const { turnsPerDay, hoursPerDay, peak, callsPerLongTurn } = ASSUMED;
  expect(PAGE.replaceAll(/\s+/g, ' ')).toContain(
    `${turnsPerDay} turns a day in ${hoursPerDay} hours, and in the busiest hour ${peak} times the average`,
  );
  expect(PAGE).toContain(`${callsPerLongTurn} calls`);
});
