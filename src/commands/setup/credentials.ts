import { isKey, NO_WEB_URL, parseWebUrl } from '../../config/setting-formats.js';
import { type LangfuseConfig, variableFor } from '../../config/settings.js';

/** What the user enters to select a Langfuse project. */
export interface Credentials {
  readonly publicKey: string;
  readonly secretKey: string;
  readonly baseUrl: string;
}

/** Each data region is a separate Langfuse with its own keys. */
export const REGIONS = [
  { name: 'Europe', url: 'https://cloud.langfuse.com' },
  { name: 'United States', url: 'https://us.cloud.langfuse.com' },
  { name: 'Japan', url: 'https://jp.cloud.langfuse.com' },
  { name: 'HIPAA', url: 'https://hipaa.cloud.langfuse.com' },
] as const;

const SETTINGS = [
  ['publicKey', 'LANGFUSE_PUBLIC_KEY'],
  ['secretKey', 'LANGFUSE_SECRET_KEY'],
  ['baseUrl', 'LANGFUSE_BASE_URL'],
] as const;

/** Says what is wrong with a value without repeating it; undefined if it is good. */
export function findProblem(name: keyof Credentials, text: string): string | undefined {
  if (name === 'baseUrl')
    return parseWebUrl(text) && !/\s/.test(text) ? undefined : `${NO_WEB_URL}, such as ${REGIONS[0].url}`;
  if (text === '') return 'expected a key';
  if (!isKey(text)) return 'expected a key as Langfuse shows it, without spaces or quotes';
  if (name === 'publicKey' && text.startsWith('sk-')) return 'this is a secret key; a public key begins with pk-';
  if (name === 'secretKey' && text.startsWith('pk-')) return 'this is a public key; a secret key begins with sk-';
  return undefined;
}

/** Reads the credentials from variables, under any of their names. Bad values are left out. */
export function readCredentials(variables: NodeJS.ProcessEnv): Partial<Credentials> {
  return Object.fromEntries(
    SETTINGS.flatMap(([name, setting]) => {
      const variable = variableFor(setting, variables);
      const value = (variable && variables[variable]?.trim()) ?? '';
      return findProblem(name, value) === undefined ? [[name, value]] : [];
    }),
  );
}

/** The credentials as variables for an `env` block, under the names that the block already uses. */
export function buildVariables(
  credentials: Partial<Credentials>,
  block: NodeJS.ProcessEnv,
): { [name: string]: string } {
  return Object.fromEntries(
    SETTINGS.flatMap(([name, setting]) => {
      const value = credentials[name];
      return value === undefined ? [] : [[variableFor(setting, block) ?? setting, value]];
    }),
  );
}

export function buildLangfuseConfig({ publicKey, secretKey, baseUrl }: Credentials): LangfuseConfig {
  return { kind: 'langfuse', publicKey, secretKey, baseUrl: new URL(baseUrl), transport: 'auto' };
}
