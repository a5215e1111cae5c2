import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ask, askHidden, confirm } from '../../cli/questions.js';
import { printStdout } from '../../cli/terminal.js';
import { readCommandSettings } from '../../config/folder-settings.js';
import { isKey, NO_WEB_URL, parseOtlpHeaders, parseServer } from '../../config/setting-formats.js';
import { type LangfuseConfig, variableFor } from '../../config/settings.js';
import { adviseOnRefusal } from '../../langfuse/endpoint.js';
import { checkKeys, type KeyCheck } from '../../langfuse/server.js';

/** What the user enters to select a Langfuse project. */
export interface Credentials {
  readonly publicKey: string;
  readonly secretKey: string;
  readonly baseUrl: string;
  /** From the address of a project's page, if that was entered. */
  readonly projectId?: string | undefined;
  /** Those that a gateway in front of the server needs. They are set, not asked for. */
  readonly headers?: LangfuseConfig['headers'];
}

export interface CheckedCredentials extends Credentials {
  /** Undefined if nobody knows it: the keys may not read, or the server could not be asked and the user wants them anyway. */
  readonly project: { readonly id: string } | undefined;
  /** Whether the keys may write, but not read. */
  readonly isForIngestion?: boolean;
  /** Says which project the keys have opened; undefined if that was not tried with success. */
  readonly connection: string | undefined;
}

export type CredentialName = 'publicKey' | 'secretKey' | 'baseUrl';

const SETTINGS = [
  ['publicKey', 'LANGFUSE_PUBLIC_KEY'],
  ['secretKey', 'LANGFUSE_SECRET_KEY'],
  ['baseUrl', 'LANGFUSE_BASE_URL'],
] as const;

/** Each data region is a separate Langfuse with its own keys. */
export const REGIONS = [
  { name: 'Europe', url: 'https://cloud.langfuse.com' },
  { name: 'United States', url: 'https://us.cloud.langfuse.com' },
  { name: 'Japan', url: 'https://jp.cloud.langfuse.com' },
  { name: 'HIPAA', url: 'https://hipaa.cloud.langfuse.com' },
] as const;
export const DEFAULT_URL = REGIONS[0].url;

/** Says what is wrong with a value without repeating it; undefined if it is good. */
export function findProblem(name: CredentialName, text: string): string | undefined {
  if (name === 'baseUrl')
    return parseServer(text) && !/\s/.test(text) ? undefined : `${NO_WEB_URL}, such as ${DEFAULT_URL}`;
  if (text === '') return 'expected a key';
  if (!isKey(text)) return 'expected a key as Langfuse shows it, without spaces or quotes';
  if (name === 'publicKey' && text.startsWith('sk-')) return 'this is a secret key; a public key begins with pk-';
  if (name === 'secretKey' && text.startsWith('pk-')) return 'this is a public key; a secret key begins with sk-';
  return undefined;
}

/** Reads the credentials from variables, under any of their names. Bad values are left out. */
export function readCredentials(variables: NodeJS.ProcessEnv): Partial<Credentials> {
  const credentials: { [name in CredentialName]?: string } = {};
  for (const [name, setting] of SETTINGS) {
    const value = variables[variableFor(setting, variables) ?? '']?.trim() ?? '';
    if (findProblem(name, value) === undefined) credentials[name] = value;
  }
  const { baseUrl, ...keys } = credentials;
  return { ...keys, ...(baseUrl !== undefined && readAddress(baseUrl)) };
}

/** Reads the address of a server, or of a project's page there, in which `findProblem` has found nothing. */
export function readAddress(address: string): Pick<Credentials, 'baseUrl' | 'projectId'> {
  const { baseUrl, projectId } = parseServer(address) ?? {};
  return { baseUrl: (baseUrl?.href ?? address).replace(/\/+$/, ''), projectId };
}

/** The credentials as variables for an `env` block, under the names that the block already uses. */
export function buildVariables(credentials: Partial<Credentials>, block: NodeJS.ProcessEnv) {
  const variables: { [name: string]: string } = {};
  for (const [name, setting] of SETTINGS) {
    const value = credentials[name];
    if (value !== undefined) variables[variableFor(setting, block) ?? setting] = value;
  }
  return variables;
}

export function buildLangfuseConfig({ publicKey, secretKey, baseUrl, headers = {} }: Credentials): LangfuseConfig {
  return { kind: 'langfuse', publicKey, secretKey, baseUrl: new URL(baseUrl), headers, transport: 'auto' };
}

/** For scripts: takes what is known. Throws unless it opens a project. */
export async function checkKnownCredentials(known: Partial<Credentials>): Promise<CheckedCredentials> {
  const { publicKey, secretKey, baseUrl = DEFAULT_URL, projectId, headers = {} } = known;
  if (publicKey === undefined || secretKey === undefined)
    throw new UsageError('--yes needs keys: use --public-key and --secret-key-stdin, or set them in the environment');
  const credentials = { publicKey, secretKey, baseUrl, projectId, headers };
  const check = await checkKeys(buildLangfuseConfig(credentials));
  if (check.kind === 'accepted' || check.kind === 'only writes') return connect(credentials, check);
  throw new Error(`${check.problem}${adviseOnKind(check)}; nothing was changed`);
}

/** Which kind of keys to enter instead. That they are others needs no words. */
function adviseOnKind(check: KeyCheck): string {
  return 'status' in check && check.status === 403 ? `; ${adviseOnRefusal(check.status)}` : '';
}

type Opening = Extract<KeyCheck, { readonly kind: 'accepted' | 'only writes' }>;

/** Keys that may only write do not tell their project. It is the one whose page was entered, if one was. */
function connect(credentials: Credentials, check: Opening): CheckedCredentials & { readonly connection: string } {
  const { projectId } = credentials;
  if (check.kind === 'only writes') {
    const connection = `Connected: ${check.problem}. So Langfuse does not say to which project.`;
    const project = projectId === undefined ? undefined : { id: projectId };
    return { ...credentials, connection, project, isForIngestion: true };
  }
  const { project } = check;
  const owner = project.organization === undefined ? '' : ` (organization "${project.organization}")`;
  return { ...credentials, project, connection: toOneLine(`Connected to project "${project.name}"${owner}.`) };
}

/** Asks for a server and its keys until they open a project. What is known is the default; what is given is not asked for. */
export async function askForCredentials(
  known: Partial<Credentials>,
  given: Partial<Credentials> = {},
): Promise<CheckedCredentials> {
  const { baseUrl = DEFAULT_URL, projectId } = given.baseUrl === undefined ? await askForServer(known) : given;
  const page = projectId === undefined ? '' : `/project/${projectId}/settings/api-keys`;
  if (known.publicKey === undefined)
    printStdout(`Your keys are in Langfuse, in your project's settings: ${baseUrl}${page}`);
  const publicKey = given.publicKey ?? (await askUntilGood('publicKey', 'Public key', known.publicKey, ask));
  const secretKey = await askUntilGood('secretKey', 'Secret key (hidden)', known.secretKey, askHidden);
  const credentials = { baseUrl, projectId, publicKey, secretKey, headers: known.headers ?? {} };
  const check = await checkKeys(buildLangfuseConfig(credentials));
  if (check.kind === 'accepted' || check.kind === 'only writes') {
    const checked = connect(credentials, check);
    printStdout(checked.connection);
    return checked;
  }
  const isCloud = REGIONS.some(({ url }) => url === baseUrl);
  const hint = isCloud ? ' Keys are valid in one region only.' : ' Check that they belong to this server.';
  const isWrong = check.kind === 'refused' && check.status === 401;
  printStdout(`${check.problem}${adviseOnKind(check)}.${isWrong ? hint : ''}`);
  if (!('status' in check) && (await confirm('Use them anyway?')))
    return { ...credentials, project: undefined, connection: undefined };
  return askForCredentials(credentials);
}

async function askForServer({ baseUrl: known = DEFAULT_URL, projectId }: Partial<Credentials>) {
  printStdout('Which Langfuse?');
  for (const [index, { name, url }] of REGIONS.entries())
    printStdout(`  ${index + 1}  Cloud, ${name.padEnd(13)}  ${url}`);
  const place = REGIONS.findIndex(({ url }) => url === known);
  const read = async (question: string) => {
    const answer = await ask(question);
    return REGIONS[/^\d$/.test(answer) ? Number(answer) - 1 : -1]?.url ?? answer;
  };
  const shown = place < 0 ? known : `${place + 1}`;
  const answer = await askUntilGood('baseUrl', 'A number, or the URL of your own', known, read, shown);
  return answer === known ? { baseUrl: known, projectId } : readAddress(answer);
}

/** `read` asks a question; an empty answer means what is known. */
async function askUntilGood(
  name: CredentialName,
  words: string,
  known: string | undefined,
  read: (question: string) => Promise<string>,
  shown = known && abbreviateKey(known),
): Promise<string> {
  for (;;) {
    const answer = (await read(shown === undefined ? `${words}: ` : `${words} [${shown}]: `)) || (known ?? '');
    const problem = findProblem(name, answer);
    if (problem !== undefined) printStdout(`  ${problem}`);
    else if (answer === known || (await isMeant(name, answer))) return answer;
  }
}

/** Langfuse creates keys of this form, but on a server of your own you can choose any. */
const KEY_FORMS = { publicKey: 'pk-lf-', secretKey: 'sk-lf-', baseUrl: '' };

async function isMeant(name: CredentialName, answer: string): Promise<boolean> {
  const form = KEY_FORMS[name];
  return answer.startsWith(form) || confirm(`  Langfuse's keys begin with ${form}. Use it anyway?`);
}

/** Shows enough of a key to recognise it, and too little to use it. */
function abbreviateKey(key: string): string {
  return key.length < 16 ? '…' : `${key.slice(0, 6)}…${key.slice(-4)}`;
}

/** The headers for a gateway, which the shell or any settings may name. */
export async function readGatewayHeaders(env: NodeJS.ProcessEnv): Promise<LangfuseConfig['headers']> {
  const { CC_LANGFUSE_HEADERS: headers = '' } = (await readCommandSettings(env, process.cwd())).env;
  return parseOtlpHeaders(headers) ?? {};
}
