import { setFlagsFromString } from 'node:v8';

/**
 * For commands that read all transcripts: garbage is collected earlier. That takes a tenth more time and half of the memory.
 */
export function saveMemory(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--heap-growing-percent=20');
}
