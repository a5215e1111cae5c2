import { type MediaBlock, splitTextAndMedia } from '../file/content.js';
import type { UserLine } from '../file/line.js';
import type { UserFields } from '../file/schema.js';
import { readPeerMessage } from './peer-message.js';
import type { Prompt, PromptContext } from './turn.js';

/** The prompt of a turn that is still open. */
export interface OpenPrompt extends Prompt {
  /** Later lines can add to it. */
  readonly media: MediaBlock[];
  /** The name of the command that it is, without the slash. */
  readonly command: string | undefined;
  readonly context: PromptContext;
  readonly copied: boolean;
  /** Whether the transcript that it was copied from is there. */
  readonly isHeldElsewhere: boolean;
}

type PromptText = Pick<OpenPrompt, 'content' | 'media' | 'command'> & Pick<PromptContext, 'trigger' | 'ide'>;

export function openPrompt(line: UserLine, at: number, original: 'there' | 'gone' | undefined): OpenPrompt {
  const { uuid, promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint, sessionKind } = line.fields;
  const { content, media, command, trigger, ide } = parsePromptText(line);
  const context = { trigger, ide, promptId, cwd, gitBranch, version, slug, permissionMode, entrypoint, sessionKind };
  const { number, start: offset } = line.location;
  const copy = { copied: original !== undefined, isHeldElsewhere: original === 'there' };
  return { uuid, promptId, line: number, offset, at, content, media, command, context, ...copy };
}

/** A prompt that is a command, without what marks one; undefined if it does not look like one. */
export function asCommand(prompt: OpenPrompt): OpenPrompt | undefined {
  const [, command] = /^\/(\S+)/.exec(prompt.content) ?? [];
  return command === undefined ? undefined : { ...prompt, command, context: { ...prompt.context, trigger: 'command' } };
}

/**
 * Whether the line says that it was given as a prompt, by whomever: a person, a program, a schedule, a background task. The
 * body of a skill is a companion of its prompt. `turnOrigin` alone is also on lines that are no prompts.
 */
export function isMarkedAsPrompt({ promptSource, origin, turnCompanion }: UserFields): boolean {
  return !turnCompanion && (promptSource !== undefined || origin?.kind !== undefined);
}

/** How the line of a command begins, whether it is built in or the user's own. */
export const COMMAND = /^\s*<command-(?:name|message)>/;
/** Such a line ends with a tag, too; a prompt into which one was pasted goes on. */
const COMMAND_END = /<\/command-\w{1,40}>$/;
/** Who gives prompts in general; then only their form says more. */
const PEOPLE_AND_PROGRAMS = ['human', 'sdk', 'coordinator'];

/** A prompt as the user typed it, without what Claude Code wrapped around it. */
export function parsePromptText({ content, fields }: UserLine): PromptText {
  const { text: whole, media } = splitTextAndMedia(content);
  const { text, ide } = splitIdeContext(whole);
  const plain: PromptText = { content: text, trigger: 'human', ide, media, command: undefined };
  // Only this says that the plan was accepted: the session in which it was made ends with a refusal.
  if (fields.planContent !== undefined) return { ...plain, trigger: 'accepted-plan' };
  const source = fields.origin?.kind ?? fields.turnOrigin ?? 'human';
  const message = source === 'peer' || !isMarkedAsPrompt(fields) ? readPeerMessage(text) : undefined;
  if (message !== undefined) return { ...plain, content: message, trigger: 'peer' };
  if (!PEOPLE_AND_PROGRAMS.includes(source)) return { ...plain, trigger: source.replaceAll('_', '-') };
  const command = findTag('command-name', text)?.trim();
  if (command !== undefined && COMMAND.test(text) && COMMAND_END.test(text.trimEnd())) {
    const typed = [command, findTag('command-args', text)?.trim()].filter((part) => part).join(' ');
    return { ...plain, content: typed, trigger: 'command', command: command.replace(/^\//, '') };
  }
  const isBash = text.startsWith('<bash-input>') && fields.promptSource === undefined;
  const bash = isBash ? findTag('bash-input', text) : undefined;
  return bash === undefined ? plain : { ...plain, content: `!${bash}`, trigger: 'bash' };
}

/** The output of a `!command`, in the form that the model sees. */
export function parseBashOutput(text: string): string {
  return [findTag('bash-stdout', text), findTag('bash-stderr', text)].filter((part) => part).join('\n');
}

const IDE_CONTEXT = /^\s*<ide_(\w+)>([\s\S]*?)<\/ide_\1>\s*/;

function splitIdeContext(text: string): Pick<PromptContext, 'ide'> & { text: string } {
  const ide: { [kind: string]: string } = {};
  let rest = text;
  for (let match = IDE_CONTEXT.exec(rest); match; match = IDE_CONTEXT.exec(rest)) {
    const [whole, kind = '', words = ''] = match;
    ide[kind] = [ide[kind], words.trim()].filter((part) => part).join('\n');
    rest = rest.slice(whole.length);
  }
  return { text: rest, ide: Object.keys(ide).length > 0 ? ide : undefined };
}

export function findTag(name: string, text: string): string | undefined {
  const from = text.indexOf(`<${name}>`);
  const to = text.indexOf(`</${name}>`, from);
  return from < 0 || to < 0 ? undefined : text.slice(from + name.length + 2, to);
}
