export interface Option {
  readonly name: string;
  readonly short: string | undefined;
  readonly takesValue: boolean;
  readonly what: string;
}

export interface ShownCommand {
  readonly name: string;
  readonly what: string;
  /** What its first operand can be, if that is one of a few words. */
  readonly words: readonly string[];
  readonly options: readonly Option[];
}

const COMMAND = /^ {2}(\w+) {2,}(\S.*)$/gm;
const OPTION = /^ {2}(?:-(\w), )?--([\w-]+)( <[^>]+>)?\S*(?: \[\S+\])?(?: {2,}|\n {4,})?(\S.*)?$/gm;
const WORDS = /^usage: cc-langfuse \w+ (\w+(?:\|\w+)+)/;

/** Reads commands and options from the texts of `--help`, by command; the program's own has an empty name. */
export function parseHelp(texts: ReadonlyMap<string, string>): ShownCommand[] {
  const commands = Array.from((texts.get('') ?? '').matchAll(COMMAND), ([, name = '', what = '']) => {
    const text = texts.get(name) ?? '';
    return { name, what, words: WORDS.exec(text)?.[1]?.split('|') ?? [], options: parseOptions(text) };
  });
  const help = { name: 'help', what: 'explains a command', words: commands.map(({ name }) => name), options: [] };
  return [...commands, help];
}

function parseOptions(text: string): Option[] {
  const options = Array.from(text.matchAll(OPTION), ([, short, name = '', value, what = '']) => ({
    name,
    short,
    takesValue: value !== undefined,
    what: what.replace(/[:;,]$/, ''),
  }));
  const help = { name: 'help', short: 'h', takesValue: false, what: 'explains the command' };
  return [...options.filter(({ name }) => name !== 'help'), help];
}
