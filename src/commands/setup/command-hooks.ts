import type { ClaudeSettings } from '../../config/claude-settings.js';
import { isRecord } from '../../shared/json.js';

/** A command that settings register for an event. */
export interface CommandHook {
  readonly event: string;
  /** Where it stands in the settings. */
  readonly path: readonly (string | number)[];
  readonly command: string;
  /** What is started, and its arguments, without quotes. */
  readonly words: readonly string[];
  /** In seconds. */
  readonly timeout: number | undefined;
}

/** The command hooks of settings, in the order of the file; what is of another shape is passed over. */
export function commandHooks({ hooks }: ClaudeSettings): CommandHook[] {
  if (!isRecord(hooks)) return [];
  return Object.entries(hooks).flatMap(([event, groups]) =>
    entriesOf(groups).flatMap(([group, place]) =>
      entriesOf(isRecord(group) ? group.hooks : undefined).flatMap(([hook, index]) =>
        commandHook(hook, event, ['hooks', event, place, 'hooks', index]),
      ),
    ),
  );
}

function commandHook(hook: unknown, event: string, path: CommandHook['path']): CommandHook[] {
  if (!isRecord(hook) || typeof hook.command !== 'string') return [];
  const args = Array.isArray(hook.args) ? hook.args.map(String) : [];
  const timeout = typeof hook.timeout === 'number' ? hook.timeout : undefined;
  return [{ event, path, command: hook.command, words: [...shellWords(hook.command), ...args], timeout }];
}

function entriesOf(list: unknown): [unknown, number][] {
  return Array.isArray(list) ? list.map((item, index) => [item, index]) : [];
}

/** The words of a command line. Backslashes stay where they escape nothing between quotes: on Windows they are paths. */
function shellWords(command: string): string[] {
  const words = command.match(/(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"';&|()])+/gs) ?? [];
  return words.map((word) =>
    word.replace(/"((?:\\.|[^"\\])*)"|'([^']*)'/gs, (_, double?: string, single?: string) =>
      double === undefined ? (single ?? '') : double.replace(/\\(["$`\\])/g, '$1'),
    ),
  );
}
