import { REDACTED } from './mark.js';
import { isReference, looksSecret } from './named-values.js';
import { NAME, textBefore, wordBefore } from './secret-names.js';

/** `--password value`, `-Token "value"`, `"--api-key", "value"`. What a flag is called decides, and the value must look like one. */
const FLAG_VALUE = new RegExp(
  `(${NAME}|BEARER|AUTHKEY|STOREPASS|KEYPASS)(=|[ \\t]{1,4}|["'],\\s{0,4}|:(?=\\S))` +
    '(?!\\\\?["\']?-)(?:(\\\\?")((?:(?!\\\\?")[^\\r\\n]){1,4096})|(\\$?\\\\?\')((?:(?!\\\\?\')[^\\r\\n]){1,4096})|' +
    '((?:[^\\s"\'`\\\\]|\\\\(?![nrt"\'\\\\])){3,4096}))',
  'gi',
);
const FLAG = /^(?:--?|\/)(?:[A-Za-z][\w-]*[_-])?[A-Za-z]*$/;
/** A reference, a path, a constant, or a placeholder. */
const NO_VALUE =
  /^(?:[$<{[(]|%\w+%|[~.]{0,2}\/|\.{3}|(?:id|name|type|env|file|source|src|projects)[=/:]|\[redacted\]|(?:true|false|yes|no|none|null|string|value|stdin)\W*$|[A-Z][A-Z_]*$|\w+\.(?:pem|key|txt|json|ya?ml|env|p12|pfx|crt|jks|ts|js|md|py|go|sh)$)/;
/** After a space: another flag, an operator, or a word of a sentence. */
const NO_WORD = /^(?:[-=|>&@]|[a-z]{1,16}[.,;:)\]]*$)/;

/** The rest of a command: up to the end of its line, unless the line goes on, or to the next command. */
const REST = '((?:\\\\\\\\\\\\n|\\\\\\r?\\n|(?!\\\\[nr])[^\\n\\r|;&]|[|;&](?! |[|;&])){1,2000})';
/** A value with or without quotes. */
const VALUE = '(?:\\\\?["\'])?)[^\\s"\'\\\\]{1,1024}';

/** Commands whose flags hold secrets, and what is before the secret. */
const SECRET_ARGUMENTS: readonly { readonly commands: string; readonly before: string; readonly isOnce?: boolean }[] = [
  {
    commands: 'curl|xh|https?|ab|wget',
    before: '\\s(?:-[A-Za-z]{0,8}[uUa]|--(?:proxy-)?user|--auth)[= ]{0,2}(?:\\\\?["\'])?[^\\s:"\'$-][^\\s:"\']{0,128}:',
  },
  { commands: 'curl', before: '\\s(?:-b|--cookie)[= ]{0,2}(?:\\\\?["\'])?[\\w.-]{1,64}=' },
  {
    commands:
      'mysql|mysqldump|mysqladmin|mysqlimport|mysqlshow|mysqlsh|mariadb|mariadb-dump|mariadb-admin|mycli|7z|7za',
    before: '\\s-p',
  },
  { commands: 'sshpass', before: '^[^\\n]{0,32}?\\s-p ?', isOnce: true },
  {
    commands: 'docker|podman|nerdctl|buildah|skopeo|helm|oras|crane|az|oc|cf|argocd|heroku|vault|flyctl|snyk|ibmcloud',
    before: '\\blogin\\b[^\\n]{0,512}?\\s-p[ =]?',
    isOnce: true,
  },
  { commands: 'redis-cli|redis-benchmark|keydb-cli|valkey-cli', before: '\\s-a ?' },
  {
    commands:
      'mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport|cqlsh|influx|rabbitmqadmin|clickhouse-client|ncftpput|net-snmp|rdesktop|snowsql',
    before: '\\s-p ?',
  },
  { commands: 'sqlcmd|osql|bcp|isql|tsql|zip|unzip|mosquitto_pub|mosquitto_sub', before: '\\s-P ?' },
  { commands: 'ldapsearch|ldapmodify|ldapadd|ldapdelete|ldappasswd|ldapwhoami', before: '\\s-w ?' },
  { commands: 'smbclient|rpcclient|smbmap', before: '\\s-U ?(?:\\\\?["\'])?[^\\s%"\']{1,128}%' },
  { commands: 'sqlplus|rman|expdp|impdp|sqlldr', before: '\\s(?:\\\\?["\'])?[\\w$#]{1,64}/' },
  { commands: 'openssl', before: '\\s-(?:pass(?:in|out)?) pass:' },
  { commands: 'openssl', before: '\\s-(?:k|K) ' },
  { commands: 'ssh-keygen', before: '\\s-[NP] ' },
  { commands: 'htpasswd', before: '^\\s{1,2}-\\w*b\\w* (?:\\S{1,256} )?\\S{1,128} ', isOnce: true },
  { commands: 'nmcli', before: '\\s(?:password|wifi-sec\\.psk|802-1x\\.password) ' },
  { commands: 'kubectl|oc', before: '--from-literal[= ](?:\\\\?["\'])?[\\w.-]{1,128}=' },
  { commands: 'rabbitmqctl', before: '\\s(?:add_user|change_password|authenticate_user) \\S{1,128} ' },
  { commands: 'lftp|ncftp', before: '\\s-u ?[^\\s,]{1,128},' },
  { commands: 'net', before: '\\suser \\S{1,64} (?!/)' },
  { commands: 'net', before: '\\suse [^\\n]{0,256}?/user:\\S{1,128} (?!/)', isOnce: true },
  { commands: 'cmdkey|xfreerdp|wfreerdp', before: '\\s/(?:pass|p):' },
  { commands: 'gh', before: '\\bsecret set [^\\n]{0,256}?(?:-b|--body)[= ]?', isOnce: true },
  { commands: 'pulumi', before: '\\bconfig set --secret \\S{1,128} ' },
  { commands: 'redis-cli|keydb-cli|valkey-cli', before: '\\s(?:AUTH|CONFIG SET (?:requirepass|masterauth)) ' },
  { commands: 'aws', before: '\\bconfigure set (?:[\\w.-]{1,64}\\.)?aws_(?:secret_access_key|session_token) ' },
  { commands: 'useradd|usermod', before: '\\s-p ' },
];

const COMMANDS = [...new Set(SECRET_ARGUMENTS.flatMap(({ commands }) => commands.split('|')))].toSorted(
  (a, b) => b.length - a.length,
);
const COMMAND_LINE = new RegExp(`(${COMMANDS.join('|').replace('https?', 'https|http')})(?:\\.exe)?(?= )${REST}`, 'g');
const ARGUMENTS = new Map(
  COMMANDS.map((command) => [
    command,
    SECRET_ARGUMENTS.filter(({ commands }) => commands.split('|').includes(command)).map(
      ({ before, isOnce }) => new RegExp(`(${before}${VALUE}`, isOnce ? '' : 'g'),
    ),
  ]),
);
ARGUMENTS.set('http', ARGUMENTS.get('https?') ?? []).set('https', ARGUMENTS.get('https?') ?? []);

/** `echo X | docker login --password-stdin` */
const PIPED_SECRET =
  /((?:echo|printf)(?: -n)? (?:\\?["'])?)[^\s"'\\|$`][^\s"'\\|]{2,256}((?:\\?["'])? ?\|[^|\n]{1,256}(?:--password-stdin|sudo -S|--with-token|--stdin|chpasswd))/g;

export function redactFlags(text: string): string {
  return text.includes('-') || text.includes('/') ? text.replace(FLAG_VALUE, redactFlag) : text;
}

/** Each of the arguments above contains one of these. */
const ARGUMENT_HINT =
  /\s(?:-{1,2}[a-zA-Z]|\/(?:p|user)|AUTH|CONFIG|user|add_|change_|password|config|wifi|\S{1,64}\/\S{1,64}@)|--password-stdin/;

export function redactCommandLines(text: string): string {
  if (!ARGUMENT_HINT.test(text)) return text;
  return text.replace(COMMAND_LINE, redactArguments).replace(PIPED_SECRET, `$1${REDACTED}$2`);
}

function redactFlag(match: string, name: string, between: string, ...groups: (string | number | undefined)[]): string {
  const [quote1, quoted1, quote2, quoted2, bare = ''] = groups.slice(0, 5) as (string | undefined)[];
  const [index, text] = groups.slice(5) as [number, string];
  const quote = quote1 ?? quote2 ?? '';
  const value = quoted1 ?? quoted2 ?? bare;
  const flag = wordBefore(text, index);
  const isSlash = flag === '' && between === ':' && /(?:^|\s)\/$/.test(textBefore(text, index));
  if (!isSlash && (!FLAG.test(flag) || /[\w)\]]$/.test(textBefore(text, index - flag.length, 1)))) return match;
  if (/^--?no-/.test(flag) || isReference(value) || isHarmlessValue(name, between + quote, value)) return match;
  const [tail = ''] = quote === '' && between !== '=' ? (/[,;)}\]>]*$/.exec(value) ?? []) : [];
  return `${name}${between}${quote}${REDACTED}${tail}`;
}

/** After `=` or in quotes, even a plain word is a value: only what stands for a secret is not. */
function isHarmlessValue(name: string, between: string, value: string): boolean {
  if (/^(?:secret|credentials?)/i.test(name) && !looksSecret(value)) return true;
  if (/^pass$/i.test(name) && /^\d{1,2}$/.test(value)) return true;
  return /^[=\s]?["'=]|["']$/.test(between) ? NO_VALUE.test(value) : NO_VALUE.test(value) || NO_WORD.test(value);
}

function redactArguments(match: string, command: string, line: string, index: number, text: string): string {
  if (/[\w.-]$/.test(textBefore(text, index, 1)) && !/\\[nrt]$/.test(textBefore(text, index, 2))) return match;
  let rest = line;
  for (const pattern of ARGUMENTS.get(command) ?? [])
    rest = rest.replace(pattern, (found: string, before: string) =>
      isReference(found.slice(before.length)) || /^[$<{%-]/.test(found.slice(before.length))
        ? found
        : before + REDACTED,
    );
  return match.slice(0, match.length - line.length) + rest;
}
