import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ask, askHidden, confirm } from '../../cli/questions.js';
import { checkKeys, type ProjectAnswer } from '../../langfuse/server.js';
import { buildLangfuseConfig, type Credentials, findProblem, REGIONS } from './credentials.js';

export interface CheckedCredentials {
  readonly credentials: Credentials;
  /** Undefined if the server could not be asked and the user wants the keys anyway. */
  readonly project: ProjectAnswer['project'];
}

/** For scripts: takes what is known. Throws unless it opens a project. */
export async function checkKnownCredentials(known: Partial<Credentials>): Promise<CheckedCredentials> {
  const { publicKey, secretKey, baseUrl = REGIONS[0].url } = known;
  if (publicKey === undefined || secretKey === undefined)
    throw new UsageError('--yes needs keys: use --public-key and --secret-key-stdin, or set them in the environment');
  const credentials = { publicKey, secretKey, baseUrl };
  const check = await checkKeys(buildLangfuseConfig(credentials));
  if (check.kind !== 'accepted') throw new Error(`${check.problem}; nothing was changed`);
  return { credentials, project: check.project };
}

/** Asks for a server and its keys until they open a project. What is known is the default. */
export async function askForCredentials(known: Partial<Credentials>): Promise<CheckedCredentials> {
  const baseUrl = await askForBaseUrl(known.baseUrl ?? REGIONS[0].url);
  if (known.publicKey === undefined)
    say(`You find the keys in Langfuse, in the settings of your project: ${new URL(baseUrl).origin}`);
  const publicKey = await askForKey('publicKey', 'Public key', known.publicKey, ask);
  const secretKey = await askForKey('secretKey', 'Secret key (hidden)', known.secretKey, askHidden);
  const credentials = { baseUrl, publicKey, secretKey };
  const check = await checkKeys(buildLangfuseConfig(credentials));
  if (check.kind === 'accepted') {
    say(`Keys OK: project "${toOneLine(check.project.name)}".`);
    return { credentials, project: check.project };
  }
  say(check.kind === 'refused' ? `${check.problem}. Keys are valid in one region only.` : `${check.problem}.`);
  if (check.kind !== 'refused' && (await confirm('Use them anyway?'))) return { credentials, project: undefined };
  return askForCredentials(credentials);
}

async function askForBaseUrl(known: string): Promise<string> {
  const place = REGIONS.findIndex(({ url }) => url === known);
  say('Which Langfuse?');
  for (const [index, { name, url }] of REGIONS.entries()) say(`  ${index + 1}  Cloud, ${name.padEnd(13)}  ${url}`);
  const shown = place < 0 ? known : String(place + 1);
  return askUntilGood('baseUrl', 'A number, or the URL of your own', shown, async (question) => {
    const answer = (await ask(question)) || known;
    return REGIONS[/^\d$/.test(answer) ? Number(answer) - 1 : -1]?.url ?? answer.replace(/\/+$/, '');
  });
}

function askForKey(
  name: 'publicKey' | 'secretKey',
  words: string,
  known: string | undefined,
  read: (question: string) => Promise<string>,
): Promise<string> {
  return askUntilGood(
    name,
    words,
    known && abbreviateKey(known),
    async (question) => (await read(question)) || (known ?? ''),
  );
}

/** Shows enough of a key to recognise it, and too little to use it. */
function abbreviateKey(key: string): string {
  return key.length < 16 ? '…' : `${key.slice(0, 6)}…${key.slice(-4)}`;
}

async function askUntilGood(
  name: keyof Credentials,
  words: string,
  shownDefault: string | undefined,
  read: (question: string) => Promise<string>,
): Promise<string> {
  for (;;) {
    const answer = await read(shownDefault === undefined ? `${words}: ` : `${words} [${shownDefault}]: `);
    const problem = findProblem(name, answer);
    if (problem === undefined) return answer;
    say(`  ${problem}`);
  }
}

function say(words: string): void {
  process.stdout.write(`${words}\n`);
}
