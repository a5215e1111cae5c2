import { REDACTED } from './mark.js';
import { once } from './once.js';
import { isReference } from './secret-values.js';
import { matchAtWordStart } from './word-start.js';

/** The rest of a command: up to the end of its line, unless the line goes on, or to the next command. */
const REST = '((?:\\\\\\\\\\\\n|\\\\\\r?\\n|(?!\\\\[nr])[^\\n\\r|;&]|[|;&](?! |[|;&])){1,2000})';
/** A value with or without quotes. */
const VALUE = '(?:\\\\?["\'])?)[^\\s"\'`\\\\]{1,1024}';

/** Commands whose flags hold secrets, and what is before the secret. */
const SECRET_ARGUMENTS: readonly { readonly commands: string; readonly before: string; readonly isOnce?: boolean }[] = [
  {
    commands: 'curl|xh|http|https|ab|wget',
    before: '\\s(?:-[A-Za-z]{0,8}[uUa]|--(?:proxy-)?user|--auth)[= ]{0,2}(?:\\\\?["\'])?[^\\s:"\'$-][^\\s:"\']{0,128}:',
  },
  { commands: 'curl', before: '\\s--oauth2-bearer[= ]' },
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

const COMMANDS = [...new Set(SECRET_ARGUMENTS.flatMap(({ commands }) => commands.split('|')))];
/** Without one of these words, followed by a space, a text needs not be searched for commands. */
export const COMMAND_WORDS: readonly string[] = [...COMMANDS, 'sudo'];

const commandPatterns = once(() => {
  const command = `${matchAtWordStart(COMMANDS)}(?:\\.exe)?(?= )`;
  return { line: new RegExp(`${command}${REST}`, 'g'), name: new RegExp(command, 'g') };
});
const argumentPatterns = new Map(
  COMMANDS.map((command) => [
    command,
    once(() =>
      SECRET_ARGUMENTS.filter(({ commands }) => commands.split('|').includes(command)).map(
        ({ before, isOnce }) => new RegExp(`(${before}${VALUE}`, isOnce ? '' : 'g'),
      ),
    ),
  ]),
);

/** `echo X | docker login --password-stdin` */
const PIPED_SECRET =
  /((?:echo|printf)(?: -n)? (?:\\?["'])?)[^\s"'\\|$`][^\s"'\\|]{2,256}((?:\\?["'])? ?\|[^|\n]{1,256}(?:--password-stdin|sudo -S|--with-token|--stdin|chpasswd))/g;

export function redactCommandLines(text: string): string {
  return text.replace(commandPatterns().line, redactArguments).replace(PIPED_SECRET, `$1${REDACTED}$2`);
}

/** A command may start another one: `docker exec db mysql -pX`. */
function redactArguments(line: string): string {
  const commands = new Set(line.match(commandPatterns().name)?.map((name) => name.replace('.exe', '')));
  let redacted = line;
  for (const command of commands) {
    const from = redacted.indexOf(command) + command.length;
    let rest = redacted.slice(from);
    for (const pattern of argumentPatterns.get(command)?.() ?? []) rest = rest.replace(pattern, redactArgument);
    redacted = redacted.slice(0, from) + rest;
  }
  return redacted;
}

function redactArgument(match: string, before: string): string {
  const value = match.slice(before.length);
  return isReference(value) || /^[$<{%-]/.test(value) ? match : before + REDACTED;
}
