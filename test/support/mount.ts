import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

/** Mounts a disk in memory at a new folder. Returns what unmounts it; undefined if this user must not mount. */
export function mount(folder: string, options: string): (() => void) | undefined {
  mkdirSync(folder, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'ignore' });
    return () => void execFileSync('umount', [folder]);
  } catch {
    return undefined;
  }
}
