import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** The version with which everything here must pass. */
const PINNED_VERSION = '2.1.326';

const CACHE = new URL('../../node_modules/.cache/claude-code/', import.meta.url).pathname;
/** The native program has a package for each platform. */
const PACKAGE = `@anthropic-ai/claude-code-${platform()}`;

/** Claude Code on this machine, or why it is missing. */
type Installation =
  | { readonly version: string; readonly program: string }
  | { readonly version: string; readonly missing: string };

/** Returns the wanted version: a number, or a tag of the registry such as `latest`. */
export function wantedVersion({ CLAUDE_CODE_VERSION }: NodeJS.ProcessEnv): string {
  return CLAUDE_CODE_VERSION || PINNED_VERSION;
}

/** Returns the path at which `npm run e2e` has installed it. */
export function claudeProgram({ CLAUDE_CODE_PROGRAM }: NodeJS.ProcessEnv = process.env): string {
  if (!CLAUDE_CODE_PROGRAM) throw new Error('npm run e2e installs Claude Code and starts these tests');
  return CLAUDE_CODE_PROGRAM;
}

/** Installs a version from the npm registry, unless it is installed already. */
export function install(wanted: string): Installation {
  try {
    const version = /^\d/.test(wanted) ? wanted : (newestVersions(1, wanted)[0] ?? wanted);
    return { version, program: findProgram(folderOf(version)) ?? download(version) };
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    // The registry answered, but it does not have this version.
    if (stderr.includes('npm error code ETARGET')) throw new Error(`there is no Claude Code ${wanted}`);
    return {
      version: wanted,
      missing: `${PACKAGE} cannot be installed from the npm registry (${findReason(stderr) ?? message})`,
    };
  }
}

/** Returns the version with a tag and those before it, newest first. */
export function newestVersions(count: number, tag = 'latest'): string[] {
  const { versions, 'dist-tags': tags } = JSON.parse(npm('view', PACKAGE, 'versions', 'dist-tags', '--json')) as {
    versions: string[];
    'dist-tags': { [tag: string]: string };
  };
  const newest = versions.indexOf(tags[tag] ?? '');
  return versions.slice(Math.max(0, newest + 1 - count), newest + 1).reverse();
}

function download(version: string): string {
  const folder = folderOf(version);
  // It has another name until it is complete, so that an interrupted installation is never used.
  const partial = `${folder}.partial`;
  mkdirSync(partial, { recursive: true });
  try {
    npm('install', '--prefix', partial, '--no-save', '--no-audit', '--no-fund', `${PACKAGE}@${version}`);
    renameSync(partial, folder);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
  const program = findProgram(folder);
  if (program === undefined) throw new Error('it contains no program');
  return program;
}

function folderOf(version: string): string {
  return join(CACHE, version);
}

function findProgram(folder: string): string | undefined {
  const path = join(folder, 'node_modules', PACKAGE, process.platform === 'win32' ? 'claude.exe' : 'claude');
  return existsSync(path) ? path : undefined;
}

function npm(...args: string[]): string {
  return execFileSync('npm', [...args, '--fetch-retries=1'], { encoding: 'utf8', stdio: 'pipe' });
}

/** Returns the line of npm's output that names the error. */
function findReason(stderr: string): string | undefined {
  return /^npm error (?!code|errno|syscall)(.+)$/m.exec(stderr)?.[1];
}

function platform(): string {
  const { platform: system, arch } = process;
  return `${system}-${arch}${system === 'linux' && !isGlibc() ? '-musl' : ''}`;
}

function isGlibc(): boolean {
  const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
  return header.glibcVersionRuntime !== undefined;
}
