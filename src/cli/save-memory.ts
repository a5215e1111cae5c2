import { setFlagsFromString } from 'node:v8';

/**
 * For commands that read all transcripts: garbage is collected earlier. That takes a twentieth more time and two thirds of the memory.
 */
export function saveMemory(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
