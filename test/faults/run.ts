import { disturb } from './kills.js';

// npm run faults -- [kills] [seed]
const [kills = '1000', seed = String(Date.now() % 100_000)] = process.argv.slice(2);
const startedAt = Date.now();
const figures = await disturb(Number(kills), Number(seed));
for (const [name, figure] of Object.entries(figures)) process.stdout.write(`${name.padEnd(20)} ${figure}\n`);
process.stdout.write(`seed ${seed}, ${((Date.now() - startedAt) / 1_000).toFixed(0)} s\n`);
process.exitCode = figures.lost + figures.duplicates + figures.exitsOtherThanZero + figures.bytesOnStdout > 0 ? 1 : 0;
