import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: ['test/support/setup.ts'],
    // Long enough for a machine that is busy with something else: only a test that hangs takes as long.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    // Each of these waits most of its time. With more at once, answers would arrive late.
    maxConcurrency: 2,
    maxWorkers: 2,
  },
});
