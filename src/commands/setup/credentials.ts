import { NO_WEB_URL, parseWebUrl } from '../../config/setting-formats.js';
import { type LangfuseConfig, variableFor } from '../../config/settings.js';

/** What a person gives to name a project of Langfuse, as text. */
export interface Credentials {
  readonly publicKey: string;
  readonly secretKey: string;
  readonly baseUrl: string;
}

/** Each data region is a Langfuse of its own, with keys of its own. */
export const REGIONS = [
  { name: 'Europe', url: 'https://cloud.langfuse.com' },
  { name: 'United States', url: 'https://us.cloud.langfuse.com' },
  { name: 'Japan', url: 'https://jp.cloud.langfuse.com' },
  { name: 'HIPAA', url: 'https://hipaa.cloud.langfuse.com' },
] as const;

const SETTINGS = {
  publicKey: 'LANGFUSE_PUBLIC_KEY',
  secretKey: 'LANGFUSE_SECRET_KEY',
  baseUrl: 'LANGFUSE_BASE_URL',
} as const;
const NAMES = ['publicKey', 'secretKey', 'baseUrl'] as const;

/** What is wrong with each, in words that do not repeat it; nothing where it is well. */
export const PROBLEMS: { readonly [name in keyof Credentials]: (text: string) => string | undefined } = {
  publicKey: (text) => keyProblem(text, 'sk-', 'that is a secret key; the public one begins with pk-'),
  secretKey: (text) => keyProblem(text, 'pk-', 'that is a public key; the secret one begins with sk-'),
  baseUrl: (text) => (parseWebUrl(text) && !/\s/.test(text) ? undefined : `${NO_WEB_URL}, such as ${REGIONS[0].url}`),
};

function keyProblem(text: string, others: string, confused: string): string | undefined {
  if (text === '') return 'expected a key';
  if (!isKey(text)) return 'expected a key as Langfuse shows it, without spaces or quotes';
  return text.startsWith(others) ? confused : undefined;
}

/** Whether a text may be a key, of whatever server: what is pasted often has more around it. */
export function isKey(text: string): boolean {
  return /^(?:(?!["'])[!-~])+$/.test(text);
}

/** The credentials that variables have, under whichever of their names; what cannot be one is passed over. */
export function credentialsIn(variables: NodeJS.ProcessEnv): Partial<Credentials> {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const variable = variableFor(SETTINGS[name], variables);
      const value = (variable && variables[variable]?.trim()) ?? '';
      return PROBLEMS[name](value) === undefined ? [[name, value]] : [];
    }),
  );
}

/** The variables that are to hold credentials: those that do in this block, or else the usual ones. */
export function variablesFor(credentials: Partial<Credentials>, block: NodeJS.ProcessEnv): { [name: string]: string } {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const value = credentials[name];
      return value === undefined ? [] : [[variableFor(SETTINGS[name], block) ?? SETTINGS[name], value]];
    }),
  );
}

export function langfuseOf({ publicKey, secretKey, baseUrl }: Credentials): LangfuseConfig {
  return { kind: 'langfuse', publicKey, secretKey, baseUrl: new URL(baseUrl), transport: 'auto' };
}

/** Enough of a key to know it again, and too little to use it. */
export function masked(key: string): string {
  return key.length < 16 ? '…' : `${key.slice(0, 6)}…${key.slice(-4)}`;
}
