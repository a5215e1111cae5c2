import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorReason } from '../../cli/command-line.js';
import { findVersionInForce, parseVersion, programInForce, programsFolder } from '../../config/installed-program.js';
import { attempt } from '../../shared/attempt.js';
import { COMPILED_FOLDER, keepCompiled } from '../../shared/compiled-code.js';
import { version } from '../../shared/version.js';

/** What is not finished: a folder that is being copied, or a link that is about to be put in force. */
const UNFINISHED = '.new-';
/** A worker lives for a minute, a long backfill for hours. After this, nothing runs from a folder that was replaced. */
const KEPT_MS = 86_400_000;
/** What is started by its path. */
const EXECUTABLE = ['cli.cjs', 'hook.sh'];

interface InstalledProgram {
  readonly folder: string;
  /** The version that was in force before; undefined if there was none. */
  readonly replaced: string | undefined;
}

/**
 * Copies the program that is running, and puts the copy in force. Whatever stops it, the program in force is whole. Returns
 * undefined if this very program was in force. Throws an error of one line.
 */
export function installProgram(env: NodeJS.ProcessEnv): InstalledProgram | undefined {
  const programs = programsFolder(env);
  const link = programInForce(env);
  try {
    makeFolder(programs);
    const folder = copyProgram(dirname(realpathSync(process.argv[1] ?? '')), programs);
    keepCompiled(folder);
    const replaced = findVersionInForce(env);
    const isNew = putInForce(folder, link);
    removeReplaced(programs, folder);
    return isNew ? { folder, replaced } : undefined;
  } catch (error) {
    throw new Error(`${programs} cannot be written (${errorReason(error)}); nothing was changed`);
  }
}

export function describeInstalled({ folder, replaced }: InstalledProgram): string {
  return `installed ${version} in ${folder}${replaced === undefined ? '' : `, in place of ${replaced}`}`;
}

function makeFolder(folder: string): void {
  mkdirSync(dirname(folder), { recursive: true });
  try {
    // Not recursively: of a read-only file system Node would then say that a file is missing.
    mkdirSync(folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

/** Returns the folder with these very files, which is new unless they were installed before. */
function copyProgram(source: string, programs: string): string {
  for (let build = 1; ; build += 1) {
    // Another build of the same version, or a damaged copy, is not touched: something may be running from it.
    const folder = join(programs, build === 1 ? version : `${version}+${build}`);
    if (!existsSync(folder)) copyFolder(source, folder);
    if (hasSameFiles(source, folder)) return folder;
  }
}

/** The folder is there as a whole or not at all. */
function copyFolder(source: string, folder: string): void {
  const unfinished = mkdtempSync(join(dirname(folder), UNFINISHED));
  try {
    for (const name of listFiles(source)) {
      copyFileSync(join(source, name), join(unfinished, name));
      chmodSync(join(unfinished, name), EXECUTABLE.includes(name) ? 0o755 : 0o644);
    }
    if (!hasSameFiles(source, unfinished)) throw new Error('its files changed meanwhile');
    renameSync(unfinished, folder);
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    // Two installations at once: the other one was faster.
    if (!existsSync(folder)) throw error;
  }
}

function hasSameFiles(folder: string, other: string): boolean {
  const names = listFiles(folder);
  return (
    names.join('/') === listFiles(other).join('/') &&
    names.every((name) => readFileSync(join(folder, name)).equals(readFileSync(join(other, name))))
  );
}

function listFiles(program: string): string[] {
  const names = readdirSync(program).filter((name) => name !== COMPILED_FOLDER);
  return names.toSorted();
}

/** Returns whether it was not in force before. */
function putInForce(folder: string, link: string): boolean {
  const replaced = attempt(() => realpathSync(link));
  if (replaced === realpathSync(folder)) return false;
  const next = join(dirname(link), UNFINISHED + randomUUID());
  touch(folder);
  try {
    // On Windows a junction, which needs no rights but a whole path.
    symlinkSync(process.platform === 'win32' ? folder : basename(folder), next, 'junction');
    // Windows does not rename onto a junction. Without one for an instant, a hook fails, and the next one sends its turn.
    if (process.platform === 'win32') rmSync(link, { force: true });
    renameSync(next, link);
  } catch (error) {
    rmSync(next, { force: true });
    throw error;
  }
  if (replaced !== undefined && dirname(replaced) === realpathSync(dirname(link))) touch(replaced);
  return true;
}

/** Records when a folder began or ceased to be in force. */
function touch(folder: string): void {
  const now = new Date();
  attempt(() => utimesSync(folder, now, now));
}

/** Removes what was replaced, or left unfinished, long ago. */
function removeReplaced(programs: string, inForce: string): void {
  for (const path of listInstalled(programs)) {
    const isOld = (attempt(() => lstatSync(path).mtimeMs) ?? Date.now()) < Date.now() - KEPT_MS;
    if (isOld && path !== inForce && basename(path) !== 'current')
      attempt(() => rmSync(path, { recursive: true, force: true }));
  }
}

/**
 * Everything that installations have put there, the link first: what is started while they are removed finds nothing rather than
 * half a program. Someone may keep a clone in the same folder.
 */
export function listInstalled(programs: string): string[] {
  const names = attempt(() => readdirSync(programs)) ?? [];
  return names
    .filter((name) => {
      const status = attempt(() => lstatSync(join(programs, name)));
      if (name === 'current') return status?.isSymbolicLink();
      return name.startsWith(UNFINISHED) || (status?.isDirectory() && parseVersion(name) !== undefined);
    })
    .toSorted((a, b) => Number(b === 'current') - Number(a === 'current'))
    .map((name) => join(programs, name));
}
