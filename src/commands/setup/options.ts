import { UsageError } from '../../cli/command-line.js';
import type { Scope } from '../../config/settings-paths.js';

/** The options that install and uninstall share. */
export const SETUP_OPTIONS = {
  scope: { type: 'string' },
  'dry-run': { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

const SCOPES: readonly Scope[] = ['user', 'project', 'local', 'managed'];

export function parseSetupOptions(values: { scope?: string; 'dry-run'?: boolean; yes?: boolean }) {
  const scope = SCOPES.find((each) => each === (values.scope ?? 'user'));
  if (!scope) throw new UsageError(`--scope ${values.scope}: expected ${SCOPES.join(', ')}`);
  return { scope, isDryRun: values['dry-run'] ?? false, assumeYes: values.yes ?? false };
}
