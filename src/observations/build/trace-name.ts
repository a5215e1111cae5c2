/** What a turn's trace can be named after. */
interface NamedTurn {
  readonly number: number;
  readonly cwd: string | undefined;
  /** As `host/owner/name`. */
  readonly repository: string | undefined;
  /** Both are content: not given if none may leave, and without secrets. */
  readonly title?: (() => string | undefined) | undefined;
  readonly prompt?: (() => string) | undefined;
}

const PROMPT_CHARS = 80;

const FIELDS: { readonly [placeholder: string]: (turn: NamedTurn) => string | undefined } = {
  n: ({ number }) => String(number),
  project: findProject,
  // Where there is no repository, the folder is the next best thing to group by.
  repository: (turn) => shortenRepository(turn.repository) ?? findProject(turn),
  title: ({ title, prompt }) => title?.() ?? cutPrompt(prompt),
  prompt: ({ prompt }) => cutPrompt(prompt),
};

export const TRACE_NAME_FIELDS = Object.keys(FIELDS).map((name) => `{${name}}`);

export function isTraceNameTemplate(template: string): boolean {
  return (template.match(/\{.*?\}/g) ?? []).every((field) => TRACE_NAME_FIELDS.includes(field));
}

/** Fills in the template. What is not known is left out, with what would separate it from the rest. */
export function nameTrace(template: string, turn: NamedTurn): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, field: string) => FIELDS[field]?.(turn) ?? '');
  const name = filled.replace(/\s+/g, ' ').replace(/^[\s:|/·–—-]+|[\s:|/·–—-]+$/g, '');
  return name || `Turn ${turn.number}`;
}

/** Returns `owner/name`, without the host. */
export function shortenRepository(repository: string | undefined): string | undefined {
  return repository?.replace(/^[^/]*\//, '');
}

function findProject({ cwd }: NamedTurn): string | undefined {
  return cwd?.split(/[\\/]/).findLast((part) => part !== '');
}

function cutPrompt(prompt: NamedTurn['prompt']): string {
  const line =
    (prompt?.() ?? '')
      .split('\n')
      .find((each) => each.trim() !== '')
      ?.trim() ?? '';
  return line.length > PROMPT_CHARS ? `${line.slice(0, PROMPT_CHARS).toWellFormed()}…` : line;
}
