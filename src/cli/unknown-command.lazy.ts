import { findSimilar, UsageError } from './command-line.js';

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  const meant = findSimilar(name, commands);
  const hint = meant === undefined ? 'see cc-langfuse --help' : `did you mean cc-langfuse ${meant}?`;
  return new UsageError(`unknown command ${name}; ${hint}`);
}
