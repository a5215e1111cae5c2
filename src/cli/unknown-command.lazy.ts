import { closestMatch } from 'leven';
import { UsageError } from './command-line.js';

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  // If more than a third of the letters differ, it is not a typing error.
  const maxDistance = Math.floor(name.length / 3);
  const closest = closestMatch(name, commands, { maxDistance });
  const hint = closest === undefined ? 'see cc-langfuse --help' : `did you mean cc-langfuse ${closest}?`;
  return new UsageError(`unknown command ${name}; ${hint}`);
}
