import type { ClaudeSettings, SettingsContent } from '../../config/claude-settings.js';
import { isRecord } from '../../shared/json.js';
import { commandHooks } from './command-hooks.js';
import { isOurs } from './our-hooks.js';

/** Something else that sends the turns of the same sessions to Langfuse: with both, each turn is there twice. */
export interface OtherExporter {
  readonly name: string;
  /** What in the settings turns it on, as a person finds it there. */
  readonly place: string;
  /** How it is turned off; for a file's own lines, by removing them. */
  readonly remedy: string;
}

export function otherExporters(settings: ClaudeSettings): OtherExporter[] {
  return [...hooksOfOthers(settings), ...pluginsOfOthers(settings), ...telemetry(settings)];
}

/** Whether one of them takes its keys from the variables that ours are in. */
export function sharesKeys(content: SettingsContent): boolean {
  return (
    content.kind === 'settings' && [...hooksOfOthers(content.settings), ...pluginsOfOthers(content.settings)].length > 0
  );
}

function hooksOfOthers(settings: ClaudeSettings): OtherExporter[] {
  const hooks = commandHooks(settings).filter((hook) => !isOurs(hook));
  return hooks.flatMap(({ event, words }) => {
    const name = nameOf(words.join(' '));
    const place = `hooks.${event}`;
    return name === undefined ? [] : [{ name, place, remedy: `take its command out of ${place}` }];
  });
}

/** The first cc-langfuse had itself run out of its repository: `pnpm dlx github:…/cc-langfuse`. */
function nameOf(command: string): string | undefined {
  if (/\bgithub:[\w.-]+\/cc-langfuse\b|\bgithub\.com[/:][\w.-]+\/cc-langfuse\b/.test(command))
    return 'the first cc-langfuse';
  if (/\blangfuse_hook\.py\b/.test(command)) return "Langfuse's hook for Claude Code";
  return /(?<!cc-)langfuse/i.test(command) ? 'a hook that names Langfuse' : undefined;
}

/** `langfuse@claude-plugins-official` has skills only. */
const PLUGIN = /^(?:langfuse-observability@|langfuse@langfuse-observability$)/;

function pluginsOfOthers({ enabledPlugins }: ClaudeSettings): OtherExporter[] {
  if (!isRecord(enabledPlugins)) return [];
  return Object.keys(enabledPlugins)
    .filter((plugin) => PLUGIN.test(plugin) && enabledPlugins[plugin] === true)
    .map((plugin) => ({
      name: "Langfuse's plugin for Claude Code",
      place: `enabledPlugins.${plugin}`,
      remedy: `claude plugin disable ${plugin}`,
    }));
}

/** Claude Code's own OpenTelemetry, pointed at a Langfuse. */
function telemetry({ env }: ClaudeSettings): OtherExporter[] {
  if (!isRecord(env) || !/^(?:1|true)$/.test(String(env.CLAUDE_CODE_ENABLE_TELEMETRY))) return [];
  return Object.keys(env)
    .filter((name) => /^OTEL_EXPORTER_OTLP_(?:TRACES_)?ENDPOINT$/.test(name))
    .filter((name) => /langfuse|\/api\/public\/otel/i.test(String(env[name])))
    .map((name) => ({
      name: "Claude Code's telemetry",
      place: `env.${name}`,
      remedy: `take ${name} out of env`,
    }));
}
