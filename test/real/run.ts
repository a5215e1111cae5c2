import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { install, newestVersions, wantedVersion } from './claude-code.js';
import { hasTmux } from './terminal.js';

/** The result for a version. */
interface Outcome {
  readonly version: string;
  readonly passed: number;
  readonly failed: number;
  readonly testResults: VitestReport['testResults'];
  readonly unknownShapes: readonly string[];
  /** The longest time between an answer's arrival at the user and at Langfuse. */
  readonly delayMs: number | undefined;
}

/** The parts of vitest's report that are used here. */
interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly meta: { readonly unknownShapes?: readonly string[]; readonly delayMs?: number | null };
    }[];
  }[];
}

const VITEST = new URL('../../node_modules/vitest/vitest.mjs', import.meta.url).pathname;
const CONFIG = new URL('vitest.config.ts', import.meta.url).pathname;
const PROJECT = new URL('../../', import.meta.url).pathname;
/** The newest version and the three before it. */
const VERSIONS = 4;

// npm run e2e -- [--versions] [--report <path>] [part of a test's name]
const { values, positionals } = parseArgs({
  options: { versions: { type: 'boolean', default: false }, report: { type: 'string' } },
  allowPositionals: true,
});
const say = (line: string) => process.stdout.write(`${line}\n`);

if (!hasTmux()) say('skipped: everything in the terminal, which needs tmux');
const outcomes = versionsToTry().flatMap((wanted) => {
  const installation = install(wanted);
  if ('program' in installation) return [outcomeOf(installation)];
  say(`skipped: Claude Code ${installation.version}, because ${installation.missing}`);
  return [];
});
for (const { version, passed, failed, unknownShapes, delayMs } of outcomes) {
  for (const shape of unknownShapes) say(`Claude Code ${version} writes something unknown: ${shape}`);
  if (delayMs !== undefined)
    say(`Claude Code ${version}: each answer arrived in Langfuse at most ${delayMs} ms after it was printed`);
  say(`Claude Code ${version}: ${passed} passed, ${failed} failed`);
}
const [passed, failed] = [sum(outcomes.map((one) => one.passed)), sum(outcomes.map((one) => one.failed))];
const testResults = outcomes.flatMap((one) => one.testResults);
const report = { numPassedTests: passed, numFailedTests: failed, testResults };
if (values.report !== undefined) writeFileSync(values.report, JSON.stringify(report));
process.exitCode = failed > 0 ? 1 : 0;

function versionsToTry(): string[] {
  if (!values.versions) return [wantedVersion(process.env)];
  try {
    return newestVersions(VERSIONS);
  } catch {
    // The installation of this one will then report the reason.
    return ['latest'];
  }
}

function outcomeOf({ version, program }: { version: string; program: string }): Outcome {
  say(`Claude Code ${version}`);
  const folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-real-'));
  const path = join(folder, 'report.json');
  const name = positionals.flatMap((part) => ['--testNamePattern', part]);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${path}`];
  const { status } = spawnSync(process.execPath, [VITEST, 'run', '--config', CONFIG, ...reporters, ...name], {
    cwd: PROJECT,
    env: { ...process.env, CLAUDE_CODE_PROGRAM: program },
    stdio: 'inherit',
  });
  try {
    const report = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
    const { testResults, numPassedTests: passed } = report;
    const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
    const unknownShapes = new Set(tests.flatMap(({ meta }) => meta.unknownShapes ?? []));
    // A run can also fail outside of its tests.
    const failed = Math.max(report.numFailedTests, status === 0 ? 0 : 1);
    const delays = tests.flatMap(({ meta }) => meta.delayMs ?? []);
    const delayMs = delays.length > 0 ? Math.max(0, ...delays) : undefined;
    return { version, passed, failed, testResults, unknownShapes: [...unknownShapes].toSorted(), delayMs };
  } catch {
    return { version, passed: 0, failed: 1, testResults: [], unknownShapes: [], delayMs: undefined };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
