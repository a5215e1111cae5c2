import { parseCommandLine, UsageError } from '../../cli/command-line.js';
import { parseHelp } from './parse-help.js';
import { SCRIPTS } from './scripts.js';

export const HELP = `usage: cc-langfuse completion bash|zsh|fish

Prints a script that completes commands and options when you press Tab. It
contains all words, so a key press does not start Node. Make it again after an
upgrade. The command has to be on your PATH, as after npm install --global.

  bash   cc-langfuse completion bash >>~/.bash_completion
  zsh    cc-langfuse completion zsh >~/.cc-langfuse.zsh
         and in ~/.zshrc, after compinit: source ~/.cc-langfuse.zsh
  fish   cd ~/.config/fish/completions
         cc-langfuse completion fish >cc-langfuse.fish

  --help
`;

type Shell = keyof typeof SCRIPTS;

/** `listHelp` returns the help of the program, under an empty name, and of each command. */
export async function run(
  args: readonly string[],
  _env: NodeJS.ProcessEnv,
  listHelp: () => Promise<ReadonlyMap<string, string>>,
): Promise<number> {
  const [shell = '', another] = parseCommandLine(args, {}).positionals;
  if (!Object.hasOwn(SCRIPTS, shell) || another !== undefined)
    throw new UsageError(`completion: expected ${Object.keys(SCRIPTS).join(', ')}; see completion --help`);
  process.stdout.write(SCRIPTS[shell as Shell](parseHelp(await listHelp())));
  return 0;
}
