import { ownValue } from '../shared/json.js';
import { findSimilar, UsageError } from './command-line.js';
import { ownCommand } from './own-command.js';

/** What other programs call our commands. Those with two meanings name both. */
const SYNONYMS: { readonly [typed: string]: readonly (readonly [command: string, what: string])[] } = {
  update: [['upgrade', 'installs the newest version']],
  list: [['sessions', 'lists sessions']],
  login: [['install', 'asks for your keys']],
  enable: [
    ['install', 'turns the export on'],
    ['unmute', 'sends a muted session again'],
  ],
  disable: [
    ['mute', 'sends nothing more of a session'],
    ['uninstall', 'turns the export off'],
  ],
  search: [['sessions --search <text>', 'finds text in sessions']],
  export: [['backfill', 'exports sessions that are on disk']],
};

export function unknownCommand(name: string, commands: readonly string[]): UsageError {
  return new UsageError(`unknown command ${name}; ${findHint(name, commands)}`);
}

function findHint(name: string, commands: readonly string[]): string {
  const synonyms = ownValue(SYNONYMS, name);
  if (synonyms) return synonyms.map(([command, what]) => `${ownCommand()} ${command} ${what}`).join(', ');
  const meant = findSimilar(name, commands);
  return meant === undefined ? `see ${ownCommand()} --help` : `did you mean ${ownCommand()} ${meant}?`;
}
