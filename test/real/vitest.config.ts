import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/real/*.test.ts'],
    globalSetup: ['test/support/setup.ts'],
    testTimeout: 60_000,
    // With more of these programs than processors, answers would arrive late.
    maxConcurrency: 2,
    fileParallelism: false,
  },
});
