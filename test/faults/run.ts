import { fuzz } from './fuzz.js';
import { disturb } from './kills.js';
import { numbersFrom } from './random.js';

// npm run faults -- [kills] [fuzzed runs] [seed]
const [kills = '1000', runs = '2000', seed = String(Date.now() % 100_000)] = process.argv.slice(2);
const startedAt = Date.now();
const disturbed = await disturb(Number(kills), Number(seed));
const fuzzed = await fuzz(Number(runs), numbersFrom(Number(seed)));
const print = (figures: object) => {
  for (const [name, figure] of Object.entries(figures)) process.stdout.write(`  ${name.padEnd(20)} ${figure}\n`);
};
process.stdout.write('killed and disturbed\n');
print(disturbed);
process.stdout.write('fed with changed bytes\n');
print(fuzzed);
process.stdout.write(`seed ${seed}, ${((Date.now() - startedAt) / 1_000).toFixed(0)} s\n`);
const { lost, duplicates, imagesMissing, exitsOtherThanZero, bytesOnStdout } = disturbed;
const wrong = [lost, duplicates, imagesMissing, exitsOtherThanZero, bytesOnStdout];
const isWrong = [...wrong, fuzzed.exitsOtherThanZero, fuzzed.bytesOnStdout].some((count) => count > 0);
process.exitCode = isWrong ? 1 : 0;
