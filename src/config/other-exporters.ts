import { isRecord } from '../shared/json.js';
import { findCommandHooks, isOwnHook } from './claude-hooks.js';
import { type ClaudeSettings, listEnabledPlugins } from './claude-settings.js';

/** Something else that sends the same turns to Langfuse: with both, each turn appears there twice. */
interface OtherExporter {
  readonly name: string;
  /** What in the settings enables it. */
  readonly place: string;
  /** How to turn it off. */
  readonly fix: string;
}

export function findOtherExporters(settings: ClaudeSettings): OtherExporter[] {
  return [...findHooksOfOthers(settings), ...findPluginsOfOthers(settings), ...findTelemetry(settings)];
}

/** Whether another exporter may take its keys from the same variables as this program. */
export function hasExporterWithSameKeys(settings: ClaudeSettings): boolean {
  return [...findHooksOfOthers(settings), ...findPluginsOfOthers(settings)].length > 0;
}

function findHooksOfOthers(settings: ClaudeSettings): OtherExporter[] {
  const hooks = findCommandHooks(settings).filter((hook) => !isOwnHook(hook));
  return hooks.flatMap(({ event, words }) => {
    const name = nameExporter(words.join(' '));
    const place = `hooks.${event}`;
    return name === undefined ? [] : [{ name, place, fix: `remove its command from ${place}` }];
  });
}

/** The original cc-langfuse is run from its repository: `pnpm dlx github:…/cc-langfuse`. */
function nameExporter(command: string): string | undefined {
  if (/\bgithub:[\w.-]+\/cc-langfuse\b|\bgithub\.com[/:][\w.-]+\/cc-langfuse\b/.test(command))
    return 'the original cc-langfuse';
  if (/\blangfuse_hook\.py\b/.test(command)) return "Langfuse's hook for Claude Code";
  return /(?<!cc-)langfuse/i.test(command) ? 'a hook that mentions Langfuse' : undefined;
}

/** `langfuse@claude-plugins-official` has skills only. */
const PLUGIN = /^(?:langfuse-observability@|langfuse@langfuse-observability$)/;

function findPluginsOfOthers(settings: ClaudeSettings): OtherExporter[] {
  const plugins = listEnabledPlugins(settings).filter((plugin) => PLUGIN.test(plugin));
  return plugins.map((plugin) => ({
    name: "Langfuse's plugin for Claude Code",
    place: `enabledPlugins.${plugin}`,
    fix: `claude plugin disable ${plugin}`,
  }));
}

/** Claude Code's own OpenTelemetry, sent to Langfuse. */
function findTelemetry({ env }: ClaudeSettings): OtherExporter[] {
  if (!isRecord(env) || !/^(?:1|true)$/.test(String(env.CLAUDE_CODE_ENABLE_TELEMETRY))) return [];
  return Object.keys(env)
    .filter((name) => /^OTEL_EXPORTER_OTLP_(?:TRACES_)?ENDPOINT$/.test(name))
    .filter((name) => /langfuse|\/api\/public\/otel/i.test(String(env[name])))
    .map((name) => ({ name: "Claude Code's telemetry", place: `env.${name}`, fix: `remove ${name} from env` }));
}
