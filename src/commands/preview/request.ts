import { UsageError } from '../../cli/command-line.js';
import { sanitizeText, sanitizeValue } from '../../observations/content/sanitize.js';
import type { Redact } from '../../observations/redaction/redact.js';
import { isRecord } from '../../shared/json.js';
import { type Block, describeMedia, extractText, parseBlocks } from '../../transcript/file/content.js';
import { readLines } from '../../transcript/file/lines.js';
import type { RequestMessage, RequestShape, TokenCounts } from '../../transcript/file/schema.js';
import { groupTokens } from '../../transcript/file/token-kinds.js';
import { RequestIndex, type SentRequest } from '../../transcript/requests/request-index.js';
import type { SessionOverview } from '../../transcript/sessions/overview.js';
import { readAllTurns } from '../../transcript/turns/read-all-turns.js';
import type { Response, Turn } from '../../transcript/turns/turn.js';

/** Which request of a session is to be shown: the nth of a turn, or its last one. */
interface RequestPlace {
  readonly turn: number;
  readonly request: number | undefined;
}

/** A request to the model, as Claude Code sent it for the main thread. */
export interface ShownRequest {
  readonly turn: number;
  readonly request: number;
  /** How many requests the turn has. */
  readonly requests: number;
  readonly model: string | undefined;
  /** What the model read, as the API counted it; undefined if the transcript does not say. */
  readonly tokens: number | undefined;
  /** How many messages are not found in the transcript. */
  readonly missingMessages: number;
  readonly hasSystem: boolean;
  readonly parts: readonly RequestPart[];
}

/** What a request consists of, with its size as it was sent and its text redacted. */
export interface RequestPart {
  readonly kind: PartKind;
  /** The number of its message, counted from the first. */
  readonly message?: number;
  readonly role?: string;
  /** Of a tool, or of a call or a result of one. */
  readonly name?: string | undefined;
  readonly chars: number;
  readonly text: string;
}

export const PART_KINDS = [
  'system prompt',
  'tool',
  'user text',
  'assistant text',
  'system text',
  'thinking',
  'tool call',
  'tool result',
  'image or document',
  'other',
] as const;
type PartKind = (typeof PART_KINDS)[number];

export function parseRequestPlace(text: string): RequestPlace {
  const [, turn, request] = /^([1-9]\d{0,8})(?:\.([1-9]\d{0,8}))?$/.exec(text) ?? [];
  if (turn === undefined)
    throw new UsageError(`--request ${text}: expected a turn, or a turn and a request, as in 3.2`);
  return { turn: Number(turn), request: request === undefined ? undefined : Number(request) };
}

/** Finds a request in a transcript. Only this one request is read into memory. */
export function findRequest({ path, sessionId }: SessionOverview, place: RequestPlace, redact: Redact): ShownRequest {
  const index = new RequestIndex(path);
  try {
    const turn = findTurn(readAllTurns(path, 'main', sessionId, index.observe(readLines(path))), place);
    const { responses } = turn;
    const request = place.request ?? responses.length;
    const response = responses[request - 1];
    if (!response)
      throw new UsageError(
        `--request ${place.turn}.${request}: turn ${place.turn} has ${describeCount(responses.length)}`,
      );
    const sent = response.request && index.find(response.request.id);
    if (!sent)
      throw new UsageError(
        `--request ${place.turn}.${request}: the transcript does not have it; Claude Code keeps requests since 2.1.326`,
      );
    return buildRequest(sent, response, { turn: place.turn, request, requests: responses.length }, redact);
  } finally {
    index.close();
  }
}

/** Reads all turns, since a message can be in a line that comes later than its request. */
function findTurn(turns: Iterable<Turn>, { turn: wanted }: RequestPlace): Turn {
  let found: Turn | undefined;
  let last = 0;
  for (const turn of turns) {
    if (turn.number === wanted) found = turn;
    last = Math.max(last, turn.number);
  }
  if (found) return found;
  throw new UsageError(`--request ${wanted}: the session ${last === 0 ? 'has no turns' : `has turns up to ${last}`}`);
}

function describeCount(requests: number): string {
  return requests === 1 ? 'one request' : `${requests} requests`;
}

function buildRequest(
  sent: SentRequest,
  { model, usage }: Response,
  place: Pick<ShownRequest, 'turn' | 'request' | 'requests'>,
  redact: Redact,
): ShownRequest {
  const shape = sent.shape?.read();
  const messages: RequestPart[][] = [];
  const names = new Map<string, string>();
  let missingMessages = 0;
  let number = sent.count;
  for (const stored of sent.messages) {
    const message = stored.kind === 'stored' ? stored.read() : undefined;
    if (message) messages.unshift(listMessageParts(message, number, names, redact));
    const count = stored.kind === 'missing' ? stored.count : 1;
    if (!message) missingMessages += count;
    number -= count;
  }
  const parts = [...(shape ? listShapeParts(shape) : []), ...messages.flat()];
  return {
    ...place,
    model,
    tokens: usage?.input_tokens === undefined ? undefined : countInput(usage),
    missingMessages,
    hasSystem: shape !== undefined,
    // The newest message comes first, and a result before its call: only now all names are known.
    parts: parts.map((part) => ({
      ...part,
      name: part.kind === 'tool result' ? names.get(part.name ?? '') : part.name,
      text: sanitizeText(part.text, redact),
    })),
  };
}

function countInput(usage: TokenCounts): number {
  const { output: _, ...groups } = groupTokens(usage);
  return Object.values(groups).reduce((sum, tokens) => sum + tokens, 0);
}

function listShapeParts({ system, tools }: RequestShape): RequestPart[] {
  const texts = parseBlocks(system).map((block) => (block.kind === 'text' ? block.text : JSON.stringify(block)));
  const definitions = Array.isArray(tools) ? tools.filter(isRecord) : [];
  return [
    ...texts.map((text) => ({ kind: 'system prompt' as const, chars: text.length, text })),
    ...definitions.map((tool) => ({
      kind: 'tool' as const,
      name: typeof tool.name === 'string' ? tool.name : undefined,
      chars: JSON.stringify(tool).length,
      text: typeof tool.description === 'string' ? tool.description : '',
    })),
  ];
}

/** Adds the name of each call under its id, for its result. */
function listMessageParts(
  message: RequestMessage,
  number: number,
  names: Map<string, string>,
  redact: Redact,
): RequestPart[] {
  const { role, content } = message;
  return parseBlocks(content).map((block) => {
    if (block.kind === 'tool_use' && block.id !== undefined) names.set(block.id, block.name);
    return { message: number, role, ...describeBlock(block, role, redact) };
  });
}

function describeBlock(
  block: Block,
  role: string,
  redact: Redact,
): Pick<RequestPart, 'kind' | 'name' | 'chars' | 'text'> {
  switch (block.kind) {
    case 'text':
      return { kind: nameText(role), chars: block.text.length, text: block.text };
    case 'thinking':
      return { kind: 'thinking', chars: block.text.length, text: block.text };
    case 'tool_use': {
      const input = block.input ?? {};
      // Some values only their names mark as secret.
      const text = JSON.stringify(sanitizeValue(input, redact).value);
      return { kind: 'tool call', name: block.name, chars: JSON.stringify(input).length, text };
    }
    case 'tool_result': {
      const text = extractText(block.content);
      return { kind: 'tool result', name: block.toolUseId, chars: text.length, text };
    }
    case 'media':
      return { kind: 'image or document', chars: block.data.length, text: `[${describeMedia(block)}]` };
    case 'other': {
      const text = JSON.stringify(block.value) ?? '';
      return { kind: 'other', name: block.type, chars: text.length, text };
    }
  }
}

function nameText(role: string): PartKind {
  if (role === 'assistant') return 'assistant text';
  return role === 'system' ? 'system text' : 'user text';
}
