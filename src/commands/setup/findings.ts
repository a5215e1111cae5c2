import { findOwnPlugins } from '../../config/claude-hooks.js';
import type { SettingsFile } from '../../config/claude-settings.js';
import { findOtherExporters } from '../../config/other-exporters.js';

/** What in the settings that Claude Code reads here will be in the way: a line each, with what to do. */
export function findings(files: readonly SettingsFile[]): string[] {
  return files.flatMap(({ path, scope, content }) => {
    if (content.kind !== 'settings') return [];
    const { settings, isStrict } = content;
    const others = findOtherExporters(settings).map(
      ({ name, place, fix }) => `${path}: ${name} (${place}) sends the same turns, which will come twice; ${fix}`,
    );
    const plugins = findOwnPlugins(settings).map(
      (plugin) =>
        `${path}: the plugin ${plugin} starts cc-langfuse, too; one of both will do: claude plugin disable ${plugin}`,
    );
    const hasNoHooks = settings.disableAllHooks === true;
    const hasOnlyItsOwn = scope === 'managed' && settings.allowManagedHooksOnly === true;
    return [
      ...others,
      ...plugins,
      ...(hasNoHooks ? [`${path}: disableAllHooks is set, with which Claude Code starts no hook; remove it`] : []),
      ...(hasOnlyItsOwn
        ? [`${path}: allowManagedHooksOnly is set: whoever manages it has to register the hooks there`]
        : []),
      ...(isStrict
        ? []
        : [`${path}: has comments or trailing commas, with which Claude Code may refuse it; it wants plain JSON`]),
    ];
  });
}
