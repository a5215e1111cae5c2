import { dirname } from 'node:path';
import { moveAsideCommand, quoteForShell } from '../../../cli/terminal.js';
import { HOOK_SECONDS } from '../../../config/claude-hooks.js';
import type { SettingsFile } from '../../../config/claude-settings.js';
import type { HookFacts, RegisteredHook } from '../facts/hooks.js';
import { broken, type Finding, none, ok, warning } from '../finding.js';
import { shownValue } from '../masking.js';

const EVENTS = Object.keys(HOOK_SECONDS);

/** Where this very process has its program and its Node from, links followed. */
interface Running {
  readonly programPath: string;
  readonly nodePath: string;
}

/** `timeoutMs` is what a run takes at most. */
export function checkHooks(facts: HookFacts, running: Running, timeoutMs: number): Finding[] {
  return [
    ...facts.files.flatMap(checkFile),
    ...facts.switchedOff.flatMap((off) => checkSwitch(off, facts)),
    checkRegistered(facts),
    ...checkPrograms(facts.hooks, running),
    ...checkTimeouts(facts.hooks, timeoutMs),
    ...checkRepeated(facts),
    ...checkOthers(facts),
  ];
}

function checkFile({ path, scope, content }: SettingsFile): Finding[] {
  const details = { path, scope };
  const refused = 'Claude Code then takes nothing from it';
  switch (content.kind) {
    case 'invalid':
      return [broken('settings-file', `${path} is no JSON (${content.problem}); ${refused}`, `mend ${path}`, details)];
    case 'unreadable':
      return [
        broken(
          'settings-file',
          `${path} cannot be read (${content.reason}); ${refused}`,
          content.reason === 'not a regular file' ? moveAsideCommand(path) : `chmod u+r ${quoteForShell(path)}`,
          details,
        ),
      ];
    case 'settings':
      return content.isStrict
        ? []
        : [
            broken(
              'settings-file',
              `${path} has comments or trailing commas; ${refused}`,
              `take them out of ${path}`,
              details,
            ),
          ];
    case 'absent':
      return [];
  }
}

/** What the user turns off leaves the hooks that manage the machine. */
function checkSwitch({ scope, path, setting }: HookFacts['switchedOff'][number], { hooks }: HookFacts): Finding[] {
  const isManaged = hooks.some(({ file }) => file.scope === 'managed');
  if (isManaged && (scope !== 'managed' || setting === 'allowManagedHooksOnly')) return [];
  const fix =
    setting === 'allowManagedHooksOnly'
      ? `have the hooks put into ${path}, or that setting taken out`
      : `take "${setting}" out of ${path}`;
  return [broken('hooks-off', `"${setting}" in ${path}: Claude Code does not start our hooks`, fix, { path, setting })];
}

function checkRegistered({ hooks, plugins }: HookFacts): Finding {
  const missing = EVENTS.filter((event) => plugins.length === 0 && !hooks.some((hook) => hook.event === event));
  const places = [
    ...new Set(hooks.map(({ file }) => `${file.scope} settings (${file.path})`)),
    ...plugins.map(({ name, path }) => `plugin ${name} (${path})`),
  ];
  const details = { missing, places };
  const [first] = hooks;
  const fix = first ? installInto(first.file) : 'cc-langfuse install';
  if (missing.length === EVENTS.length) return broken('hooks', 'not registered in any settings', fix, details);
  const message = `registered in ${places.join(', ')}`;
  if (missing.length === 0) return ok('hooks', message, details);
  const told = `${message}, but not for ${missing.join(', ')}`;
  if (missing.includes('Stop')) return broken('hooks', `${told}: no turn is sent when it ends`, fix, details);
  return warning('hooks', `${told}: what they would send comes later, or not`, fix, details);
}

/** Each command once, however many events it is registered for. */
function checkPrograms(hooks: readonly RegisteredHook[], running: Running): Finding[] {
  const byCommand = new Map(hooks.map((hook) => [`${hook.file.path} ${hook.command}`, hook]));
  return [...byCommand.values()].map((hook) => checkProgram(hook, running));
}

function checkProgram({ program, node, file, command }: RegisteredHook, { programPath, nodePath }: Running): Finding {
  // A key may stand before the program.
  const shown = shownValue(command);
  const details = { command: shown, path: file.path };
  for (const executable of [node, program]) {
    if (executable && executable.path === undefined)
      return broken(
        'hook-program',
        `${executable.named}, which ${file.path} starts, is not there`,
        // Others have the same file, and other paths: it goes by the name alone.
        executable.named === 'cc-langfuse' && file.scope !== 'user' && file.scope !== 'local'
          ? `npm install --global ${quoteForShell(dirname(dirname(programPath)))}`
          : installInto(file),
        details,
      );
  }
  if (!program) return none('hook-program', `"${shown}" looks for the program by itself (${file.path})`, details);
  if (program.path !== programPath)
    return warning('hook-program', `${file.path} starts another one, ${program.path}`, installInto(file), details);
  const other = node && node.path !== nodePath ? `, with ${node.path}` : '';
  return ok('hook-program', `${file.path} starts this program${other}`, details);
}

function checkTimeouts(hooks: readonly RegisteredHook[], timeoutMs: number): Finding[] {
  return hooks.flatMap(({ event, timeout, file }) => {
    const most = HOOK_SECONDS[event];
    // Without a time of its own a hook has 600 s, but all those of SessionEnd have 1.5 s together.
    const hasSeconds = timeout ?? (event === 'SessionEnd' ? 1.5 : 600);
    if (most === undefined) return [];
    const needsSeconds = event === 'SessionStart' ? most : Math.ceil(timeoutMs / 1_000);
    if (hasSeconds >= needsSeconds) return [];
    const advised = Math.max(most, needsSeconds + 5);
    return [
      warning(
        'hook-timeout',
        `Claude Code ends ${event} after ${hasSeconds} s, a run may take ${needsSeconds} s`,
        `write "timeout": ${advised} beside its command in ${file.path}`,
        { event, seconds: hasSeconds, path: file.path },
      ),
    ];
  });
}

/** Claude Code runs the same command once. Of two runs the second waits for the first one's lock, and finds nothing left. */
function checkRepeated({ hooks, plugins }: HookFacts): Finding[] {
  const commandsOf = (event: string) =>
    new Set(hooks.filter((hook) => hook.event === event).map(({ command }) => command));
  const ways = Math.max(...EVENTS.map((event) => commandsOf(event).size)) + plugins.length;
  if (ways < 2) return [];
  const paths = [...new Set([...hooks.map(({ file }) => file.path), ...plugins.map(({ path }) => path)])];
  const last = hooks.at(-1)?.file;
  const fix = plugins.length > 0 || !last ? `claude plugin disable ${plugins[0]?.name}` : removeFrom(last);
  return [
    warning(
      'hooks-repeated',
      `registered in ${ways} ways (${paths.join(', ')}): each turn is sent once all the same, by one of ${ways} processes`,
      fix,
      { paths },
    ),
  ];
}

function checkOthers({ others }: HookFacts): Finding[] {
  const isFirst = ({ name, path }: OtherExporterIn, place: number) =>
    others.findIndex((other) => other.name === name && other.path === path) === place;
  return others.filter(isFirst).map(({ name, path }) => {
    const same = others.filter((other) => other.name === name && other.path === path);
    return warning(
      'other-exporters',
      `${name} (${path}) sends the same turns: each is in Langfuse twice`,
      [...new Set(same.map(({ fix }) => fix))].join('; '),
      { path, places: same.map(({ place }) => place) },
    );
  });
}
type OtherExporterIn = HookFacts['others'][number];

function installInto({ scope, path }: RegisteredHook['file']): string {
  if (scope === 'managed') return `have ${path} mended by who manages this machine`;
  return scope === 'user' ? 'cc-langfuse install' : `cc-langfuse install --scope ${scope}`;
}

function removeFrom({ scope, path }: RegisteredHook['file']): string {
  if (scope === 'managed') return 'cc-langfuse uninstall';
  return scope === 'user' ? `take all but one of them out of ${path}` : `cc-langfuse uninstall --scope ${scope}`;
}
