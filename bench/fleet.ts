import { parseArgs } from 'node:util';
import { playFleetDay } from '../test/faults/fleet.js';
import { peakTurnsPerSecond } from '../test/support/sizing.js';

// npm run bench:fleet -- [--homes 1000] [--minutes 8]: so many minutes of the busiest hour of so many developers.
const { values } = parseArgs({
  options: { homes: { type: 'string', default: '1000' }, minutes: { type: 'string', default: '8' } },
});
const homes = Number(values.homes);
const turnsPerSecond = peakTurnsPerSecond(homes);
const turns = Math.round(turnsPerSecond * Number(values.minutes) * 60);
const startedAt = Date.now();
const { latestMs, ...figures } = await playFleetDay({ homes, turns, turnsPerSecond, hooksAtOnce: 16 });
const shown = {
  homes,
  'turns per second': turnsPerSecond.toFixed(2),
  ...figures,
  'latest turn began after': `${(latestMs / 1_000).toFixed(1)} s`,
  'whole run': `${((Date.now() - startedAt) / 1_000).toFixed(0)} s`,
};
for (const [name, figure] of Object.entries(shown)) process.stdout.write(`${name.padEnd(24)} ${figure}\n`);
process.exitCode = figures.lost + figures.doubled + figures.exitsOtherThanZero > 0 ? 1 : 0;
