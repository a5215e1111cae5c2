import { UsageError } from '../../cli/command-line.js';
import type { Scope } from '../../config/claude-settings.js';

/** The scopes whose file is the user's to change. */
type OwnScope = Exclude<Scope, 'managed'>;
const OWN_SCOPES: readonly OwnScope[] = ['user', 'project', 'local'];

/** What install and uninstall are asked for alike. */
export interface SetupRequest {
  readonly scope: OwnScope;
  readonly isDryRun: boolean;
  /** Nothing is to be asked. */
  readonly isForScripts: boolean;
}

export const SETUP_OPTIONS = {
  scope: { type: 'string' },
  'dry-run': { type: 'boolean' },
  yes: { type: 'boolean' },
} as const;

export function setupRequest(
  command: string,
  values: { scope?: string; 'dry-run'?: boolean; yes?: boolean },
  [operand]: readonly string[],
): SetupRequest {
  if (operand !== undefined) throw new UsageError(`${operand}: ${command} takes no operands; see ${command} --help`);
  const scope = OWN_SCOPES.find((each) => each === (values.scope ?? 'user'));
  if (!scope) throw new UsageError(`--scope ${values.scope}: expected ${OWN_SCOPES.join(', ')}`);
  return { scope, isDryRun: values['dry-run'] ?? false, isForScripts: values.yes ?? false };
}
