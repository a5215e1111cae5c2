import { UsageError } from '../../cli/command-line.js';
import { toOneLine } from '../../cli/format.js';
import { ask } from '../../cli/questions.js';
import { printStdout } from '../../cli/terminal.js';
import { GIT, variableFor } from '../../config/settings.js';
import type { Scope } from '../../config/settings-paths.js';
import { variableNames } from '../../config/settings-table.js';
import { findEmail, readGitIdentity } from '../../git/identity.js';

/** The answer that the traces name no user. */
const NONE = 'none';
/** Langfuse's SDKs leave out longer ones. */
const LONGEST = 200;
const EXPECTED = `expected a name of at most ${LONGEST} characters, ${GIT} or ${NONE}`;

/** Checks the option's value. What everyone reads must not give everyone the name of one person. */
export function parseUser(user: string | undefined, scope: Scope): string | undefined {
  const name = user?.trim();
  if (name === undefined) return undefined;
  if (!isName(name)) throw new UsageError(`--user: ${EXPECTED}`);
  const isShared = scope === 'project' || scope === 'managed';
  if (isShared && name !== GIT && name !== NONE)
    throw new UsageError(`--user: that file is for everyone, so it takes only ${GIT} (each one's address) or ${NONE}`);
  return name;
}

/** Asks for the user of the traces. The default is who it is by the variables, else git's address, which is shown. */
export async function askForUser(variables: NodeJS.ProcessEnv, env: NodeJS.ProcessEnv): Promise<string> {
  const email = findEmail(readGitIdentity(env));
  const nobody = { user: NONE, words: 'nobody' };
  const choices =
    email === undefined
      ? [nobody]
      : [{ user: GIT, words: `git's e-mail address: ${toOneLine(email)}, or a repository's own` }, nobody];
  printStdout('Who is the user of your traces?');
  for (const [index, { words }] of choices.entries()) printStdout(`  ${index + 1}  ${words}`);
  const known = variables[variableFor('LANGFUSE_USER_ID', variables) ?? '']?.trim() ?? choices[0]?.user ?? NONE;
  const shown = choices.findIndex(({ user }) => user === known) + 1 || known;
  for (;;) {
    const answer = (await ask(`A number, or a name [${shown}]: `)) || known;
    const user = /^\d$/.test(answer) ? choices[Number(answer) - 1]?.user : answer;
    if (user !== undefined && isName(user)) return user;
    printStdout(`  ${EXPECTED}`);
  }
}

/** The user as a variable for an `env` block, under the name that the block already uses. Without a value it is to be removed. */
export function buildUserVariables(
  user: string | undefined,
  block: NodeJS.ProcessEnv,
): { readonly [name: string]: string | undefined } {
  if (user === undefined) return {};
  if (user === NONE) return Object.fromEntries(variableNames('LANGFUSE_USER_ID').map((name) => [name, undefined]));
  return { [variableFor('LANGFUSE_USER_ID', block) ?? 'LANGFUSE_USER_ID']: user };
}

function isName(text: string): boolean {
  return text !== '' && text.length <= LONGEST && !/\p{Cc}/u.test(text);
}
