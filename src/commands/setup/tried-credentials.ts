import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ask, askHidden, confirm } from '../../cli/questions.js';
import { checkKeys, type ProjectAnswer } from '../../langfuse/project.js';
import { type Credentials, langfuseOf, masked, PROBLEMS, REGIONS } from './credentials.js';

export interface TriedCredentials {
  readonly credentials: Credentials;
  /** Undefined where the server could not be asked, and the user wants them all the same. */
  readonly project: ProjectAnswer['project'];
}

/** Takes what is known, where nothing may be asked; throws where that opens no project. */
export async function takeCredentials(known: Partial<Credentials>): Promise<TriedCredentials> {
  const { publicKey, secretKey, baseUrl = REGIONS[0].url } = known;
  if (publicKey === undefined || secretKey === undefined)
    throw new UsageError('--yes needs keys: give --public-key and --secret-key-stdin, or set them in the environment');
  const credentials = { publicKey, secretKey, baseUrl };
  const check = await checkKeys(langfuseOf(credentials));
  if (check.kind !== 'accepted') throw new Error(`${check.problem}; nothing was changed`);
  return { credentials, project: check.project };
}

/** Asks for a Langfuse and its keys until they open a project; what is known is offered. */
export async function askForCredentials(known: Partial<Credentials>): Promise<TriedCredentials> {
  const baseUrl = await askForBaseUrl(known.baseUrl ?? REGIONS[0].url);
  if (known.publicKey === undefined)
    say(`Its keys are in Langfuse, in the project's settings: ${new URL(baseUrl).origin}`);
  const publicKey = await askForKey('publicKey', 'Public key', known.publicKey, ask);
  const secretKey = await askForKey('secretKey', 'Secret key (stays hidden)', known.secretKey, askHidden);
  const credentials = { baseUrl, publicKey, secretKey };
  const check = await checkKeys(langfuseOf(credentials));
  if (check.kind === 'accepted') {
    say(`They open the project ${toOneLine(check.project.name)}.`);
    return { credentials, project: check.project };
  }
  say(check.kind === 'refused' ? `${check.problem}. Keys belong to one region.` : `${check.problem}.`);
  if (check.kind !== 'refused' && (await confirm('Take them all the same?')))
    return { credentials, project: undefined };
  return askForCredentials(credentials);
}

async function askForBaseUrl(known: string): Promise<string> {
  const place = REGIONS.findIndex(({ url }) => url === known);
  say('Which Langfuse?');
  for (const [index, { name, url }] of REGIONS.entries()) say(`  ${index + 1}  Cloud, ${name.padEnd(13)}  ${url}`);
  return askUntilGood('A number, or the URL of your own', place < 0 ? known : String(place + 1), async (question) => {
    const answer = (await ask(question)) || known;
    const url = REGIONS[/^\d$/.test(answer) ? Number(answer) - 1 : -1]?.url ?? answer.replace(/\/+$/, '');
    return { answer: url, problem: PROBLEMS.baseUrl(url) };
  });
}

function askForKey(
  name: 'publicKey' | 'secretKey',
  words: string,
  known: string | undefined,
  askIn: (question: string) => Promise<string>,
): Promise<string> {
  return askUntilGood(words, known && masked(known), async (question) => {
    const answer = (await askIn(question)) || (known ?? '');
    return { answer, problem: PROBLEMS[name](answer) };
  });
}

async function askUntilGood(
  words: string,
  offered: string | undefined,
  answerTo: (question: string) => Promise<{ answer: string; problem: string | undefined }>,
): Promise<string> {
  const { answer, problem } = await answerTo(offered === undefined ? `${words}: ` : `${words} [${offered}]: `);
  if (problem === undefined) return answer;
  say(`  ${problem}`);
  return askUntilGood(words, offered, answerTo);
}

function say(words: string): void {
  process.stdout.write(`${words}\n`);
}
