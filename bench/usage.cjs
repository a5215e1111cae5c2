// Loaded before a program: tells at its end how much memory and processor time it took.
const { writeFileSync } = require('node:fs');
process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeFileSync(
    process.env.BENCH_USAGE,
    JSON.stringify({ rssMB: maxRSS / 1_000, cpuMs: (userCPUTime + systemCPUTime) / 1_000 }),
  );
});
