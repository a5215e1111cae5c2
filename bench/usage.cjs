// Loaded before a program: writes at its end how much memory and CPU time it used.
const { writeFileSync } = require('node:fs');
process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeFileSync(
    process.env.BENCH_USAGE,
    JSON.stringify({ rssMB: maxRSS / 1_000, cpuMs: (userCPUTime + systemCPUTime) / 1_000 }),
  );
});
