import type { ShownCommand } from './parse-help.js';

type Commands = readonly ShownCommand[];

/** What prints the script of each shell. */
export const SCRIPTS = { bash: buildBash, zsh: buildZsh, fish: buildFish } as const;

const PROGRAM_OPTIONS = ['--help', '--version'];

function buildBash(commands: Commands): string {
  const names = [...commands.map(({ name }) => name), ...PROGRAM_OPTIONS].join(' ');
  return `# bash completion for cc-langfuse
_cc_langfuse() {
  local words=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='${names}'
  else
    case "\${COMP_WORDS[1]} \${COMP_WORDS[COMP_CWORD-1]}" in
    ${listValued(commands)}) return ;;
    esac
    case \${COMP_WORDS[1]} in
${commands.map((command) => `    ${command.name}) words='${listWords(command).join(' ')}' ;;`).join('\n')}
    esac
  fi
  # shellcheck disable=SC2207 # No word has a space.
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _cc_langfuse cc-langfuse
`;
}

function buildZsh(commands: Commands): string {
  const describe = (name: string, what: string) => quote(`${name}:${what}`);
  const options = commands.map((command) => {
    const words = command.words.map((word) => quote(word)).join(' ');
    const names = command.options.map(({ name, what }) => describe(`--${name}`, what)).join(' ');
    return `  ${command.name})
    words_=(${words})
    options=(${names})
    ;;`;
  });
  return `#compdef cc-langfuse
_cc_langfuse() {
  local -a commands words_ options
  commands=(
${commands.map(({ name, what }) => `    ${describe(name, what)}`).join('\n')}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case "$words[2] $words[CURRENT-1]" in
  (${listValued(commands)}) _files; return ;;
  esac
  case $words[2] in
${options.join('\n')}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe -o option options
  elif (( CURRENT == 3 && $#words_ )); then
    _describe word words_
  else
    _files
  fi
}
if [[ $funcstack[1] == _cc-langfuse ]]; then
  _cc_langfuse "$@"
else
  compdef _cc_langfuse cc-langfuse
fi
`;
}

function buildFish(commands: Commands): string {
  const lines = commands.flatMap(({ name, what, words, options }) => [
    `complete -c cc-langfuse -n __fish_use_subcommand -f -a ${name} -d ${quote(what)}`,
    ...words.map((word) => `complete -c cc-langfuse -n ${quote(inCommand(name))} -f -a ${word}`),
    ...options.map(
      ({ name: option, short, takesValue, what: help }) =>
        `complete -c cc-langfuse -n ${quote(inCommand(name))}${short ? ` -s ${short}` : ''} -l ${option}${takesValue ? ' -r' : ''} -d ${quote(help)}`,
    ),
  ]);
  return `# fish completion for cc-langfuse
function __cc_langfuse_in
  set -l words (commandline -opc)
  test (count $words) -gt 1; and test $words[2] = $argv[1]
end
${lines.join('\n')}
`;
}

function inCommand(name: string): string {
  return `__cc_langfuse_in ${name}`;
}

function listWords({ words, options }: ShownCommand): string[] {
  return [...words, ...options.map(({ name }) => `--${name}`)];
}

/** Each option that takes a value, with its command. */
function listValued(commands: Commands): string {
  return commands
    .flatMap(({ name, options }) => options.filter(({ takesValue }) => takesValue).map((option) => [name, option.name]))
    .map(([name, option]) => `'${name} --${option}'`)
    .join('|');
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
