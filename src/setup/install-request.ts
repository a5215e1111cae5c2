import { text } from 'node:stream/consumers';
import { parseCommandLine, UsageError } from '../command-line.js';
import { type Credentials, PROBLEMS } from './credentials.js';
import type { Scope } from './settings-files.js';

/** The scopes whose file is the user's to change. */
export type OwnScope = Exclude<Scope, 'managed'>;
const OWN_SCOPES: readonly OwnScope[] = ['user', 'project', 'local'];

/** What install and uninstall are asked for alike. */
export interface SetupRequest {
  readonly scope: OwnScope;
  readonly isDryRun: boolean;
  /** Nothing is to be asked. */
  readonly isForScripts: boolean;
}

export interface InstallRequest extends SetupRequest {
  readonly given: Partial<Credentials>;
}

const SETUP_OPTIONS = {
  scope: { type: 'string' },
  'dry-run': { type: 'boolean' },
  yes: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

const INSTALL_OPTIONS = {
  ...SETUP_OPTIONS,
  'public-key': { type: 'string' },
  'secret-key-stdin': { type: 'boolean' },
  'base-url': { type: 'string' },
} as const;

/** What the command line asks for; undefined where it asks for help. */
export async function readInstallRequest(args: readonly string[]): Promise<InstallRequest | undefined> {
  const { values, positionals } = parseCommandLine(args, INSTALL_OPTIONS);
  if (values.help) return undefined;
  const request = setupRequest('install', values, positionals);
  const { 'public-key': publicKey, 'base-url': baseUrl, 'secret-key-stdin': isSecretKeyPiped } = values;
  if (request.scope === 'project' && (publicKey ?? baseUrl ?? isSecretKeyPiped) !== undefined)
    throw new UsageError(
      '--scope project: its file is committed and gets no keys; give them with --scope user or local',
    );
  const given = {
    ...(publicKey !== undefined && { publicKey: checked('--public-key', 'publicKey', publicKey) }),
    ...(baseUrl !== undefined && { baseUrl: checked('--base-url', 'baseUrl', baseUrl.trim().replace(/\/+$/, '')) }),
    ...(isSecretKeyPiped && { secretKey: checked('--secret-key-stdin', 'secretKey', await piped()) }),
  };
  return { ...request, given };
}

export function readUninstallRequest(args: readonly string[]): SetupRequest | undefined {
  const { values, positionals } = parseCommandLine(args, SETUP_OPTIONS);
  return values.help ? undefined : setupRequest('uninstall', values, positionals);
}

function setupRequest(
  command: string,
  values: { scope?: string; 'dry-run'?: boolean; yes?: boolean },
  [operand]: readonly string[],
): SetupRequest {
  if (operand !== undefined) throw new UsageError(`${operand}: ${command} takes no operands; see ${command} --help`);
  const scope = OWN_SCOPES.find((each) => each === (values.scope ?? 'user'));
  if (!scope) throw new UsageError(`--scope ${values.scope}: expected ${OWN_SCOPES.join(', ')}`);
  return { scope, isDryRun: values['dry-run'] ?? false, isForScripts: values.yes ?? false };
}

function checked(option: string, name: keyof Credentials, value: string): string {
  const problem = PROBLEMS[name](value.trim());
  if (problem !== undefined) throw new UsageError(`${option}: ${problem}`);
  return value.trim();
}

/** A key on the command line would be in the shell's history, and in every list of processes. */
function piped(): Promise<string> {
  if (process.stdin.isTTY) throw new UsageError('--secret-key-stdin: stdin is the terminal; pipe the key into it');
  return text(process.stdin);
}
