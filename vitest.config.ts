import { realpathSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { defineConfig } from 'vitest/config';

const NOT_UNIT = ['test/{e2e,faults,real}/**'];

/** What these test is done differently on Windows, or cannot be made there. */
const NOT_ON_WINDOWS = [
  // Homes are named by HOME, hooks are commands for a POSIX shell, and files have modes.
  'test/commands/doctor/**',
  // Commands are run by /bin/sh.
  'test/commands/setup/program-path.test.ts',
  // Modes and links of settings files.
  'test/commands/setup/settings-file.test.ts',
];

/** The folder for temporary files is a link on macOS, and has a short name on Windows; what is compared has real paths. */
const TEMPORARY = realpathSync.native(tmpdir());

export default defineConfig({
  test: {
    // Long enough for a machine that is busy with something else: only a test that hangs takes as long.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    env: { TMPDIR: TEMPORARY, TEMP: TEMPORARY, TMP: TEMPORARY },
    // Most of an end-to-end test's time is spent waiting for the processes that it starts.
    maxWorkers: availableParallelism() + 1,
    // One process runs many files, since loading the modules again for each file takes longer than many of the tests.
    isolate: false,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: process.platform === 'win32' ? [...NOT_UNIT, ...NOT_ON_WINDOWS] : NOT_UNIT,
        },
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
