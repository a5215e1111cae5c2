import { text } from 'node:stream/consumers';
import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { type Credentials, PROBLEMS, REGIONS } from './credentials.js';
import { SETUP_OPTIONS, type SetupRequest, setupRequest } from './setup-request.js';

const HELP = `usage: cc-langfuse install [options]

Registers the hooks in Claude Code's settings, and writes the keys of a Langfuse
project into their env block. In a terminal it asks for what it needs, and tries
the keys before it writes them. Where CC_LANGFUSE_OTLP_URL names a Collector it
needs none. All else in the file stays as it is, and a copy
of it is put beside it.

  --scope <scope>       user: ~/.claude/settings.json (the default)
                        local: .claude/settings.local.json
                        project: .claude/settings.json, which is committed, so
                        it gets no keys, and no paths of this machine
  --dry-run             show what would change, and change nothing
  --yes                 ask nothing; what is not given is taken from the
                        settings, or from the environment
  --public-key <key>
  --secret-key-stdin    read the secret key from stdin
  --base-url <url>      the server (${REGIONS[0].url})
  --help

Exit code: 0, 1 where something failed, 2 where it could not be asked so, 130
where it was stopped.
`;

export interface InstallRequest extends SetupRequest {
  readonly given: Partial<Credentials>;
}

const OPTIONS = {
  ...SETUP_OPTIONS,
  'public-key': { type: 'string' },
  'secret-key-stdin': { type: 'boolean' },
  'base-url': { type: 'string' },
} as const;

/** What the command line asks for. */
export async function readInstallRequest(args: readonly string[]): Promise<InstallRequest> {
  const { values, positionals } = parseCommandLine(args, OPTIONS, HELP);
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
