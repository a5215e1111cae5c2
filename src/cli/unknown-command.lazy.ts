import { closestMatch } from 'leven';
import { UsageError } from './command-line.js';

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  // A word of which more is wrong is no slip of the fingers.
  const maxDistance = Math.floor(name.length / 3);
  const meant = closestMatch(name, commands, { maxDistance });
  const hint = meant === undefined ? 'see cc-langfuse --help' : `did you mean cc-langfuse ${meant}?`;
  return new UsageError(`there is no command ${name}; ${hint}`);
}
