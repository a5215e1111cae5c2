import { closestMatch } from 'leven';
import { UsageError } from './command-line.js';
import { ownCommand } from './own-command.js';

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  // If more than a third of the letters differ, it is not a typing error.
  const maxDistance = Math.floor(name.length / 3);
  const closest = closestMatch(name, commands, { maxDistance });
  const hint = closest === undefined ? `see ${ownCommand()} --help` : `did you mean ${ownCommand()} ${closest}?`;
  return new UsageError(`unknown command ${name}; ${hint}`);
}
