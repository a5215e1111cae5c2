import { type MediaBlock, splitTextAndMedia } from '../file/content.js';
import type { Line } from '../file/line.js';
import type { Trigger } from './turn.js';

type User = Extract<Line, { kind: 'user' }>;

/** What a prompt says to a person: as it was typed, without what the program wrapped around it. */
export interface PromptText {
  readonly content: string;
  /** What was given with it that is no text. */
  readonly media: readonly MediaBlock[];
  readonly trigger: Trigger;
  /** What was selected or open in the editor, by its kind. */
  readonly ide: { readonly [kind: string]: string } | undefined;
  /** The name of a command, without its slash. */
  readonly command: string | undefined;
}

export function parsePrompt({ content, fields }: User): PromptText {
  const { text: whole, media } = splitTextAndMedia(content);
  const { text, ide } = withoutIdeContext(whole);
  const kind = fields.origin?.kind;
  const wordless = { ide, media, command: undefined };
  if (kind === 'task-notification' || kind === 'auto-continuation')
    return { ...wordless, content: text, trigger: kind };
  const command = tag('command-name', text)?.trim();
  if (command !== undefined && COMMAND.test(text)) {
    const typed = [command, tag('command-args', text)?.trim()].filter((part) => part).join(' ');
    return { ide, media, content: typed, trigger: 'command', command: command.replace(/^\//, '') };
  }
  const bash = text.startsWith('<bash-input>') ? tag('bash-input', text) : undefined;
  if (bash !== undefined) return { ...wordless, content: `!${bash}`, trigger: 'bash' };
  return { ...wordless, content: text, trigger: 'human' };
}

/** A line of a command: of the program's own, or of the user's. */
export const COMMAND = /^\s*<command-(?:name|message)>/;

/** What a command that was run from the prompt wrote, as the model is shown it. */
export function parseBashOutput(text: string): string {
  return [tag('bash-stdout', text), tag('bash-stderr', text)].filter((part) => part).join('\n');
}

/** A skill's body says where it lies; it follows the command that calls the skill. */
export function isSkillBody(text: string): boolean {
  return text.startsWith('Base directory for this skill:');
}

const IDE_CONTEXT = /^\s*<ide_(\w+)>([\s\S]*?)<\/ide_\1>\s*/;

function withoutIdeContext(text: string): Pick<PromptText, 'ide'> & { text: string } {
  const ide: { [kind: string]: string } = {};
  let rest = text;
  for (let match = IDE_CONTEXT.exec(rest); match; match = IDE_CONTEXT.exec(rest)) {
    const [whole, kind = '', words = ''] = match;
    ide[kind] = [ide[kind], words.trim()].filter((part) => part).join('\n');
    rest = rest.slice(whole.length);
  }
  return { text: rest, ide: Object.keys(ide).length > 0 ? ide : undefined };
}

function tag(name: string, text: string): string | undefined {
  const from = text.indexOf(`<${name}>`);
  const to = text.indexOf(`</${name}>`, from);
  return from < 0 || to < 0 ? undefined : text.slice(from + name.length + 2, to);
}
