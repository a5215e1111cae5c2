import { findSimilar, UsageError } from './command-line.js';
import { ownCommand } from './own-command.js';

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  const meant = findSimilar(name, commands);
  const hint = meant === undefined ? `see ${ownCommand()} --help` : `did you mean ${ownCommand()} ${meant}?`;
  return new UsageError(`unknown command ${name}; ${hint}`);
}
