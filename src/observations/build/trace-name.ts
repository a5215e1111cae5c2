/** Where a turn or an agent ran. */
interface Place {
  readonly cwd: string | undefined;
  /** As `host/owner/name`. */
  readonly repository: string | undefined;
}

/** What a turn's trace can be named after. */
interface NamedTurn extends Place {
  readonly number: number;
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

const OF_A_TURN = /\{(?:n|title|prompt)\}/;

/** Names the root of an agent that has a trace of its own. */
export function nameLoneAgent(type: string | undefined): string {
  return `Agent ${type ?? ''}`.trim();
}

/** Names the trace of an agent that no call started: as those of turns, unless their names differ from turn to turn. */
export function nameAgentTrace(template: string, place: Place, type: string | undefined): string {
  const name = OF_A_TURN.test(template) ? '' : fill(template, { ...place, number: 0 });
  return name || nameLoneAgent(type);
}

export function nameTrace(template: string, turn: NamedTurn): string {
  return fill(template, turn) || `Turn ${turn.number}`;
}

/** Fills in the template. What is not known is left out, with what would separate it from the rest. */
function fill(template: string, turn: NamedTurn): string {
  const filled = template.replace(/\{(\w+)\}/g, (_, field: string) => FIELDS[field]?.(turn) ?? '');
  return filled.replace(/\s+/g, ' ').replace(/^[\s:|/·–—-]+|[\s:|/·–—-]+$/g, '');
}

/** Returns `owner/name`, without the host. */
export function shortenRepository(repository: string | undefined): string | undefined {
  return repository?.replace(/^[^/]*\//, '');
}

function findProject({ cwd }: Place): string | undefined {
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
