export const REDACTED = '[redacted]';

/** Takes the secrets out of a text. */
export type Redact = (text: string) => string;

/** A rule of the user's own, besides those that are known. */
export interface RedactionRule {
  readonly pattern: RegExp;
  readonly replace: string;
}

/**
 * Tokens that are known by how they begin. Quantifiers have bounds and no two of them meet on the same characters: a
 * text of any length takes time in proportion to it.
 */
const TOKENS = [
  'sk-ant-[\\w-]{16,256}', // Anthropic
  'sk-(?:proj|svcacct|admin)-[\\w-]{20,256}', // OpenAI
  'sk-[A-Za-z0-9]{20,128}', // OpenAI, DeepSeek and others
  '(?:sk|pk)-lf-[\\w-]{8,64}', // Langfuse
  'gh[pousr]_[A-Za-z0-9]{36,255}', // GitHub
  'github_pat_\\w{22,255}',
  'gl(?:pat|ptt|dt|rt|oas)-[\\w-]{20,128}', // GitLab
  '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}', // AWS
  'AIza[\\w-]{35}', // Google
  'ya29\\.[\\w-]{20,512}',
  'xox[abeoprs]-[\\w-]{10,256}', // Slack
  'xapp-\\d-[\\w-]{10,256}',
  '(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,256}', // Stripe
  'whsec_[A-Za-z0-9+/]{16,256}',
  'npm_[A-Za-z0-9]{36}',
  'pypi-AgE[\\w-]{50,512}',
  'hf_[A-Za-z0-9]{30,64}', // Hugging Face
  'r8_[A-Za-z0-9]{30,64}', // Replicate
  'SG\\.[\\w-]{16,32}\\.[\\w-]{30,64}', // SendGrid
  'key-[0-9a-f]{32}', // Mailgun
  'do[opr]_v1_[0-9a-f]{64}', // DigitalOcean
  'shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}', // Shopify
  'dapi[0-9a-f]{32}', // Databricks
  'lin_api_[A-Za-z0-9]{40}', // Linear
  'ntn_[A-Za-z0-9]{40,64}', // Notion
  'AGE-SECRET-KEY-1[A-Z0-9]{50,64}',
  'eyJ[\\w-]{8,4096}\\.eyJ[\\w-]{8,8192}\\.[\\w-]{8,2048}', // JSON web tokens
];

const SECRET_NAME =
  '(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|API_?KEY|PRIVATE_?KEY|ACCESS_?KEY|AUTH_?KEY|CREDENTIAL)';

const NAME_OF_A_SECRET = new RegExp(`${SECRET_NAME}$`, 'i');

/** Whether a field of this name holds a secret, whatever it looks like. */
export function isSecretName(name: string): boolean {
  return NAME_OF_A_SECRET.test(name);
}

const RULES: readonly RedactionRule[] = [
  { pattern: new RegExp(`(?<![\\w-])(?:${TOKENS.join('|')})`, 'g'), replace: REDACTED },
  // NAME=value, as in an environment
  {
    pattern: new RegExp(`\\b((?:[A-Z][A-Z0-9_]{0,48}?)?${SECRET_NAME}[A-Z0-9_]{0,16}=["']?)[^\\s"'&;]{6,4096}`, 'g'),
    replace: `$1${REDACTED}`,
  },
  // "name": "value", as in JSON and YAML
  {
    pattern: new RegExp(`(["'][\\w-]{0,48}?${SECRET_NAME}[\\w-]{0,16}["']\\s{0,8}:\\s{0,8}["'])[^"'\\s]{6,4096}`, 'gi'),
    replace: `$1${REDACTED}`,
  },
  {
    pattern:
      /\b((?:proxy-)?authorization["']?\s{0,8}[:=]\s{0,8}["']?(?:bearer|basic|token|apikey)\s{1,8})[^\s"',;]{6,8192}/gi,
    replace: `$1${REDACTED}`,
  },
  { pattern: /\b(x-api-key["']?\s{0,8}[:=]\s{0,8}["']?)[^\s"',;]{6,4096}/gi, replace: `$1${REDACTED}` },
  { pattern: /\b(bearer\s{1,8})[\w.~+/-]{20,8192}={0,2}/gi, replace: `$1${REDACTED}` },
  // https://user:password@host
  { pattern: /(:\/\/[^\s/:@"']{1,256}:)[^\s/@"']{1,256}(?=@)/g, replace: `$1${REDACTED}` },
];

/** Takes out provider keys, tokens, private keys, credentials in URLs and headers, and what the user's own rules match. */
export function redactor(own: readonly RedactionRule[]): Redact {
  const rules = [...RULES, ...own];
  return (text) =>
    rules.reduce((rest, { pattern, replace }) => rest.replace(pattern, replace), withoutPrivateKeys(text));
}

const PEM_BEGIN = /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g;

/** A private key goes from its first line to its last, or where that was cut off, to the end of the text. */
function withoutPrivateKeys(text: string): string {
  let kept = '';
  let from = 0;
  for (const begin of text.matchAll(PEM_BEGIN)) {
    if (begin.index < from) continue;
    const end = text.indexOf('-----END ', begin.index);
    const behind = end < 0 ? -1 : text.indexOf('-----', end + 9);
    kept += `${text.slice(from, begin.index)}[redacted private key]`;
    from = behind < 0 ? text.length : behind + 5;
  }
  return from === 0 ? text : kept + text.slice(from);
}
