import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    testTimeout: 30_000,
    // Most of an end-to-end test's time is spent waiting for the processes that it starts.
    maxWorkers: availableParallelism() + 1,
    // One process runs many files, since loading the modules again for each file takes longer than many of the tests.
    isolate: false,
    projects: [
      {
        extends: true,
        test: { name: 'unit', include: ['test/**/*.test.ts'], exclude: ['test/{e2e,faults,real}/**'] },
      },
      {
        extends: true,
        // These start the built program, so it is built first.
        test: { name: 'e2e', include: ['test/{e2e,faults}/**/*.test.ts'], globalSetup: ['test/support/setup.ts'] },
      },
      // What is in test/real/ starts the real Claude Code: npm run e2e.
    ],
  },
});
