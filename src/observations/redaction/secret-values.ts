import { isHarmlessKey, isHarmlessName, isKey, isVagueName, KEY, NAME } from './secret-names.js';

/** Something that stands for a secret, and what is already redacted. */
const REFERENCE =
  /^(?:\$\{?[A-Za-z_][A-Za-z_.:]*\}?|\$\{\{[^{}]*\}\}|\$\{[^{}]*\}|\$\([^()]*\)|\{\{[^{}]*\}\}|\{\w*\}|<[^<>]*>|%\w+%|\*+|[xX.…•-]{3,}|\[redacted\]|secretKeyRef|(?:process|import\.meta)\.env[.\w]*)$/;

export function isReference(value: string): boolean {
  return REFERENCE.test(value);
}

/** A word with digits in it that a person or a program made up, not the name of something. */
export function looksSecret(value: string): boolean {
  if (value.startsWith('base64:')) return true;
  return (
    value.length >= 6 && /\d/.test(value.replace(TECHNICAL, '')) && /[A-Za-z]/.test(value) && !IDENTIFIER.test(value)
  );
}

/** Digits that belong to the name of a type or an algorithm. */
export const TECHNICAL =
  /(?:int|float|double|base|utf-?|sha-?|oauth|argon|aes-?|rsa|ipv|http\/?|(?<![a-z])(?:md|ed|rs|hs|es|ec|v|x))\d{1,4}/gi;
const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
/** Words and a version or place: `user-key-1`, `oauth2`, `eu-west-1`. A UUID names something, too. */
const IDENTIFIER = new RegExp(`^(?:[a-z]+[._:/-])+[a-z]*\\d{0,3}$|${UUID.source}`, 'i');

export function isUuid(value: string): boolean {
  return UUID.test(value);
}

/** Many characters that nobody would make words of. A hash and a UUID look like that, too, but are no secrets. */
export function looksRandom(value: string): boolean {
  if (!/^[\w+/=.~-]{16,512}$/.test(value) || /^(?:[0-9a-f]+|[\d.:TZ-]+)$/i.test(value)) return false;
  if (!/\d/.test(value)) return looksShuffled(value);
  const turns = value.match(/[a-z](?=[A-Z\d])|[A-Z](?=\d)|\d(?=[A-Za-z])/g)?.length ?? 0;
  return looksSecret(value) && turns >= value.length / 8 && /\d.*[A-Za-z].*\d/.test(value);
}

/** Without digits: about as many capitals as small letters, which words in camel case do not have. */
function looksShuffled(value: string): boolean {
  const capitals = value.match(/[A-Z]/g)?.length ?? 0;
  return value.length >= 20 && capitals > value.length / 3 && capitals < (value.length * 2) / 3 && !/[_.-]/.test(value);
}

/** `settings.db1.password`: the parts of the names of things end in one or two digits at most. */
export function isPath(value: string): boolean {
  return /^[a-z_]+\d{0,2}(?:\.[a-z_]+\d{0,2})+$/i.test(value);
}

export function isMixed(value: string): boolean {
  return value.length >= 8 && /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
}

const FIELD_NAME = new RegExp(`(?:${NAME}|${KEY}|AUTHORIZATION|^(?:SET-)?COOKIE)$`, 'i');

/** Whether a field of this name holds a secret: most do whatever their value looks like. */
export function isSecretField(name: string, value: unknown): boolean {
  const [ending] = FIELD_NAME.exec(name) ?? [];
  if (ending === undefined) return false;
  const before = name.slice(0, -ending.length);
  if (!isKey(ending) && !isVagueName(ending)) return !isHarmlessName(ending, before);
  return typeof value === 'string' && !isHarmless(ending, before, value);
}

/** Whether the value of this name is no secret: `before` is the part of the name before its ending. */
export function isHarmless(name: string, before: string, value: string): boolean {
  return isHarmlessName(name, before) || isReference(value) || isHarmlessFor(name, before, value);
}

/** `"pwd": "/home/me"` is a folder, and `"pass": "ok"` a result. */
function isHarmlessFor(name: string, before: string, value: string): boolean {
  if (isKey(name)) return isHarmlessKey(before) || !isValueOfKey(name, before, value);
  if (/^secret[_-]?id/i.test(name)) return !isUuid(value);
  if (/^pwd/i.test(name)) return /^(?:[/~.]|[A-Za-z]:[\\/])/.test(value);
  if (/^pass(?![a-z])/i.test(name)) return /^(?:pass(?:ed)?|fail(?:ed)?|ok|[\d/. %]+)$/i.test(value);
  return isVagueName(name) && !looksSecret(value);
}

/** A hash is seldom called the key of something, and a variable of the environment seldom holds another key than a secret one. */
function isValueOfKey(name: string, before: string, value: string): boolean {
  if (looksRandom(value)) return true;
  if (before === '') return false;
  return (
    /^[0-9a-f]{24,128}$/i.test(value) ||
    (name.startsWith('KEY') && /^[\w+/=.~-]{16,512}$/.test(value) && looksSecret(value))
  );
}
