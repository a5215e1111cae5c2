import { ESCAPE } from './escapes.js';

/** How the names of secrets end. */
export const NAME =
  '(?:SECRET|SECRET[_-]?ID|TOKEN|PASSWORD|PASSWD|PASSPHRASE|PASSCODE|PASSWORT|CREDENTIALS?|CREDS|PASS|PWD|PW|PSK|MNEMONIC|(?:SEED|RECOVERY|SECRET|WALLET|BACKUP|MNEMONIC)[ _-]?(?:PHRASE|WORDS)|' +
  'CLIENT-KEY-DATA|CONNECTION[_-]?STRING|OTLP(?:_[A-Z]{4,7})?_HEADERS|[_-]AUTH|' +
  '(?:API|APP|PRIVATE|ACCESS|SECRET|AUTH|ENCRYPTION|DECRYPTION|SIGNING|SIGNATURE|ACCOUNT|MASTER|SESSION|COOKIE|LICENSE|' +
  'JWT|HMAC|DEPLOY|PRESHARED|SHARED|STORAGE|SERVICE|ROLE|ADMIN|CIPHER|SUBSCRIPTION|WEBHOOK|RECOVERY|SSH|SSL)[ _-]?KEY)' +
  '(?:_?\\d{1,3}|_(?:BASE|PROD|PRODUCTION|DEV|STAGING|TEST|LIVE|OLD|NEW|VALUE|B64|BASE64|RAW|STRING))?';

/** How names end that are as often those of something else: see isHarmless(). */
export const KEY = 'KEY\\d{0,2}';

export function isKey(name: string): boolean {
  return /^key\d{0,2}$/i.test(name);
}

/** Names that are as often those of something else: their value must look like a secret. */
const VAGUE =
  /^(?:SECRET[_-]?ID|[_-]AUTH|CREDS|CREDENTIALS|(?:APP|SESSION|COOKIE|STORAGE|SERVICE|ROLE|ADMIN|SSH|SSL|SHARED|WEBHOOK|RECOVERY|SIGNATURE)[_-]?KEY)/i;

export function isVagueName(name: string): boolean {
  return VAGUE.test(name);
}

/** Some names only end like that of a secret: `jsonwebtoken`, `forgotPassword`, `bypass`. */
export function isHarmlessName(name: string, before: string): boolean {
  if (/^token/i.test(name))
    return /(?:web|next[_-]?page|continuation|page|css|syntax|cancel(?:lation)?)[_-]?$/i.test(before);
  if (/^password/i.test(name)) return /(?:forgot|reset|change|show|hide|no|is|has|needs|require)[_-]?$/i.test(before);
  if (/^(?:pass|pwd|pw|psk|creds)(?![a-z])/i.test(name)) return isPartOfWord(name, before);
  return false;
}

/** Keys that are public, or find something: `publicKey`, `cache_key`, `primaryKey`. */
export function isHarmlessKey(before: string): boolean {
  return /(?:public|pub|publishable|cache|primary|foreign|partition|sort|hash|row|object|idempotency|dedup|group|query|lookup|index|host|item|entry|site|react|i18n|translation)[_-]?$/i.test(
    before,
  );
}

/** `bypass` and `COMPASS`, but not `dbPass`. */
function isPartOfWord(name: string, before: string): boolean {
  return name.charAt(0) === name.charAt(0).toLowerCase() ? /[A-Za-z]$/.test(before) : /[A-Z]$/.test(before);
}

/** How much of the text before a match is looked at. */
const CHARS_BEFORE = 64;
const ESCAPE_AT_END = new RegExp(`${ESCAPE}$`);
const UP_TO_ESCAPE = new RegExp(`^.*${ESCAPE}`);

export function isAfterWord(text: string, index: number): boolean {
  const before = textBefore(text, index);
  return /[\w-]$/.test(before) && !ESCAPE_AT_END.test(before);
}

/** Returns the part of a name before its ending. */
export function wordBefore(text: string, index: number): string {
  const [word = ''] = /[\w\\%[;-]*$/.exec(textBefore(text, index)) ?? [];
  return word.replace(UP_TO_ESCAPE, '').replace(/^.*[\\%[;]/, '');
}

export function textBefore(text: string, index: number, chars = CHARS_BEFORE): string {
  return text.slice(Math.max(0, index - chars), index);
}
