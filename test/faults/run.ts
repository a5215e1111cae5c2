import { fuzz } from './fuzz.js';
import { playHanging } from './hanging.js';
import { disturb } from './kills.js';
import { playQuickTurns } from './quick-turns.js';
import { numbersFrom } from './random.js';
import { tryRuns } from './runs.js';

// npm run faults -- [kills] [fuzzed runs] [seed] [sequences of runs] [sequences by the launcher] [sessions with quick turns, and with a hanging server]
const [
  kills = '1000',
  runs = '2000',
  seed = String(Date.now() % 100_000),
  sequences = '10000',
  launched = '50',
  quick = '100',
] = process.argv.slice(2);
const startedAt = Date.now();
const disturbed = await disturb(Number(kills), Number(seed));
const fuzzed = await fuzz(Number(runs), numbersFrom(Number(seed)));
const runsTried = await tryRuns(Number(sequences), Number(seed));
const launchedTried = await tryRuns(Number(launched), Number(seed), true);
const quickTurns = await playQuickTurns(Number(quick), Number(seed));
const hanging = await playHanging(Number(quick), Number(seed));
const labelOf = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
const print = (figures: object) => {
  for (const [name, figure] of Object.entries(figures))
    process.stdout.write(`  ${labelOf(name).padEnd(22)} ${figure}\n`);
};
process.stdout.write('hooks killed at random, with a server that fails at random\n');
print(disturbed);
process.stdout.write('payloads and transcripts with changed bytes\n');
print(fuzzed);
process.stdout.write('random sequences of runs, after which each turn is where its own run would have sent it\n');
print({ sequences: runsTried, byTheLauncher: launchedTried });
process.stdout.write('turns that follow each other faster than their lines are written\n');
print(quickTurns);
process.stdout.write('turns for two servers, one of which hangs\n');
print(hanging);
process.stdout.write(`seed ${seed}, ${((Date.now() - startedAt) / 1_000).toFixed(0)} s\n`);
const { lost, duplicates, imagesMissing, left, exitsOtherThanZero, bytesOnStdout } = disturbed;
const wrong = [
  lost,
  duplicates,
  imagesMissing,
  left,
  exitsOtherThanZero,
  bytesOnStdout,
  quickTurns.missing,
  quickTurns.sentAgain,
];
const ofServers = [hanging.heldUp, hanging.missing, hanging.sentAgain];
const isWrong = [...wrong, ...ofServers, fuzzed.exitsOtherThanZero, fuzzed.bytesOnStdout].some((count) => count > 0);
process.exitCode = isWrong ? 1 : 0;
