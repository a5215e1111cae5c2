import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: ['test/support/setup.ts'],
    testTimeout: 60_000,
    // Two of these programs at once are as much as two processors bear without one waiting for the other.
    maxConcurrency: 2,
    fileParallelism: false,
  },
});
