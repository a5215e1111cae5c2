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
  /(?:int|float|double|base|utf-?|sha-?|md|oauth|argon|ed|rs|hs|es|aes-?|ec|rsa|v|x|ipv|http\/?)\d{1,4}/gi;
/** Words and a version or place: `user-key-1`, `oauth2`, `eu-west-1`. A UUID names something, too. */
const IDENTIFIER = /^(?:[a-z]+[._:/-])+[a-z]*\d{0,3}$|^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** `settings.db1.password`: the parts of the names of things end in one or two digits at most. */
export function isPath(value: string): boolean {
  return /^[a-z_]+\d{0,2}(?:\.[a-z_]+\d{0,2})+$/i.test(value);
}

export function isMixed(value: string): boolean {
  return value.length >= 8 && /[a-z]/.test(value) && /[A-Z]/.test(value) && /\d/.test(value);
}
