/**
 * What secrets look like. A new pattern goes into TOKENS, TOKENS_BY_MARK, NAME or PREFIXED_VALUES. Quantifiers have bounds,
 * and no two of them meet on the same characters, so that the time is proportional to the text's length. Each pattern
 * begins with letters and has no lookbehind, which is what makes it fast (measured: 450 M characters a second; 85 M with a
 * lookbehind in the name). The text before a match is checked afterwards.
 */

/** Tokens that are recognized by how they begin. */
const TOKENS = [
  'sk-ant-[\\w-]{16,65536}', // Anthropic
  'sk-(?:proj|svcacct|admin|None|or-v1)-[\\w-]{20,65536}', // OpenAI, OpenRouter
  'sk-[A-Za-z0-9]{20,65536}', // OpenAI, DeepSeek and others
  '(?:sk|pk)-lf-[\\w-]{8,65536}', // Langfuse
  '(?:gsk_|csk-)[A-Za-z0-9]{40,65536}', // Groq, Cerebras
  '(?:xai|pplx|nvapi|tvly)-[\\w-]{30,65536}', // xAI, Perplexity, NVIDIA, Tavily
  'lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}', // LangSmith
  'hf_[A-Za-z0-9]{30,65536}', // Hugging Face
  'r8_[A-Za-z0-9]{30,65536}', // Replicate
  'gh[pousr]_[A-Za-z0-9]{36,65536}', // GitHub
  'github_pat_\\w{22,65536}',
  'gl(?:pat|ptt|dt|rt|oas|ft|soat|cbt|agent|imt)-[\\w-]{20,128}(?:\\.[\\w-]{2,64}){0,3}', // GitLab
  'GR1348941[\\w-]{20,65536}',
  '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}', // AWS
  'AIza[\\w-]{35}', // Google
  'ya29\\.[\\w-]{20,65536}',
  'GOCSPX-[\\w-]{28}',
  '1//0[\\w-]{30,65536}',
  'xox[a-z]-[\\w%.-]{10,65536}', // Slack
  'xapp-\\d-[\\w-]{10,65536}',
  '(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,65536}', // Stripe
  'sq0(?:atp|csp)-[\\w-]{22,65536}', // Square
  'HRKU-[\\w-]{30,65536}', // Heroku
  'whsec_[A-Za-z0-9+/]{16,65536}',
  'npm_[A-Za-z0-9]{36}',
  'pypi-AgE[\\w-]{50,65536}',
  'rubygems_[0-9a-f]{48}',
  'dckr_(?:pat|oat)_[\\w-]{20,65536}', // Docker
  'SG\\.[\\w-]{16,32}\\.[\\w-]{30,65536}', // SendGrid
  'SK[0-9a-f]{32}', // Twilio
  'key-[0-9a-f]{32}', // Mailgun
  'do[opr]_v1_[0-9a-f]{64}', // DigitalOcean
  'shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}', // Shopify
  'dapi[0-9a-f]{32}', // Databricks
  'lin_api_[A-Za-z0-9]{40}', // Linear
  '(?:ntn_|secret_)[A-Za-z0-9]{40,65536}', // Notion
  'hv[sb]\\.[\\w-]{24,65536}', // Vault
  'dp\\.(?:pt|st|ct|sa|scim|audit)\\.[\\w-]{20,65536}', // Doppler
  'glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}', // Grafana
  'figd_[\\w-]{20,65536}', // Figma
  'ATATT3x[\\w=-]{50,65536}', // Atlassian
  'PMAK-[0-9a-f-]{20,65536}', // Postman
  'NRAK-[A-Z0-9]{27}', // New Relic
  'sntry[su]_[\\w+/=]{20,65536}', // Sentry
  'sbp_[0-9a-f]{40}', // Supabase
  'pul-[0-9a-f]{40}', // Pulumi
  'nfp_[A-Za-z0-9]{36,65536}', // Netlify
  'fm2_[\\w+/=]{20,65536}', // Fly.io
  'AGE-SECRET-KEY-1[A-Z0-9]{50,65536}',
  'eyJ[\\w-]{8,4096}\\.eyJ[\\w-]{8,8192}\\.[\\w-]{8,65536}', // JSON web tokens
];

export const TOKEN = new RegExp(`(?:${TOKENS.join('|')})`, 'g');

/** Tokens that are recognized by a mark in their middle. */
export const TOKENS_BY_MARK: readonly { readonly mark: string; readonly pattern: RegExp }[] = [
  { mark: '8Q~', pattern: /[\w~.-]{3}8Q~[\w~.-]{31,34}/g }, // Azure
  { mark: ':AA', pattern: /\d{8,10}:AA[\w-]{32,34}/g }, // Telegram
  { mark: '.atlasv1.', pattern: /[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,65536}/g }, // Terraform
];

/** How the names of secrets end. */
const NAME =
  '(?:SECRET|TOKEN|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|[_-]PASS|[_-]PWD|CLIENT-KEY-DATA|OTLP(?:_[A-Z]{4,7})?_HEADERS|' +
  '(?:API|PRIVATE|ACCESS|SECRET|AUTH|ENCRYPTION|SIGNING|ACCOUNT)[_-]?KEY)' +
  '(?:_?\\d{1,3}|_(?:BASE|PROD|PRODUCTION|DEV|STAGING|TEST|LIVE|OLD|NEW|VALUE|B64|BASE64))?';

export const SECRET_NAME = new RegExp(`(?:${NAME}|AUTHORIZATION|^(?:SET-)?COOKIE|^PASS|^PWD)$`, 'i');

/** `"name": "value"`, `name = 'value'`, and the same inside a string. Only the value is redacted. */
export const QUOTED_VALUE = new RegExp(
  `(${NAME}(?:\\\\{0,3}["'])?\\s{0,8}(?:=>|:=|[:=])\\s{0,8})` +
    '(?:(")(?:\\\\.|[^"\\\\\\r\\n]){1,16384}|(\')(?:\\\\.|[^\'\\\\\\r\\n]){1,16384}|' +
    '(\\\\{1,3}["\'])(?:(?!\\\\{1,3}["\'])[^\\r\\n]){1,16384})',
  'gi',
);

/** `NAME=value` and `name: value`, which may also be code. */
export const BARE_VALUE = new RegExp(`(${NAME})(\\s{0,3}=\\s{0,3}|:[ \\t]{1,8})([^\\s"'\\\\&;]{6,65536})`, 'gi');

/** Every secret with a name or prefix contains one of these. Most texts contain none, and one test is faster than twenty. */
export const HINT = /secret|token|pass|credential|pwd|key|auth|bearer|sig|otlp|:\/\/|hooks/i;

/** Values after other prefixes. The first group, the prefix, is kept. Each prefix must match HINT. */
export const PREFIXED_VALUES: readonly RegExp[] = [
  // .npmrc, and the credentials of registries
  /(\b_(?:auth|authToken|password)\s{0,4}=\s{0,4}["']?)[^\s"'$\\]{6,65536}/gi,
  /("auth"\s{0,8}:\s{0,8}")[A-Za-z0-9+/]{12,65536}={0,2}/g,
  // a container's environment variable
  new RegExp(
    `("name"\\s{0,8}:\\s{0,8}"[\\w-]{0,64}${NAME}"\\s{0,8},\\s{0,8}"value"\\s{0,8}:\\s{0,8}")[^"\\\\]{1,16384}`,
    'gi',
  ),
  // headers
  /(authorization(?:\\{0,3}["'])?\s{0,8}[:=]\s{0,8}(?:\\{0,3}["'])?(?:bearer|basic|token|apikey|bot|negotiate|digest|key|aws4-hmac-sha256)\s{1,8})(?![${<])[^"'\\\r\n]{6,65536}/gi,
  /(authorization(?:\\{0,3}["'])?\s{0,8}[:=]\s{0,8}(?:\\{0,3}["'])?)(?=[^\s"'\\]{0,64}\d)[\w.~+/=-]{16,65536}/gi,
  /(x-[\w-]{0,24}(?:token|key|secret)(?:\\{0,3}["'])?\s{0,8}[:=]\s{0,8}(?:\\{0,3}["'])?)(?![${<])[^\s"',;\\]{6,65536}/gi,
  /((?:api-key|(?:private|job|auth)-token)(?:\\{0,3}["'])?\s{0,8}[:=]\s{0,8}(?:\\{0,3}["'])?)(?![${<])[^\s"',;\\]{6,65536}/gi,
  /(bearer\s{1,8})(?=\D{0,64}\d)[\w.~+/-]{20,65536}={0,2}/gi,
  /((?:[?&]sig|signature)=)[\w%+/-]{30,65536}/gi,
  // https://user:password@host
  /(:\/\/[^\s/:@"']{0,256}:)[^\s/"'<>?#]{1,256}(?=@)/g,
  // webhook URLs of chat channels
  /(hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/-]{20,65536}/g,
  /(discord(?:app)?\.com\/api\/webhooks\/\d{1,20}\/)[\w-]{40,65536}/g,
];
