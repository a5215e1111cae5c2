import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // These start the real Claude Code: npm run e2e.
    exclude: ['test/real/**'],
    globalSetup: ['test/support/setup.ts'],
    testTimeout: 30_000,
  },
});
