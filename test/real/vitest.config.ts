import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: ['test/support/setup.ts'],
    testTimeout: 60_000,
    // Each of these waits most of its time. With more at once, answers would arrive late.
    maxConcurrency: 2,
    maxWorkers: 2,
  },
});
