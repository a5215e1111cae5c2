import { formatElapsed, plural } from '../../cli/format.js';
import { formatDollars } from '../../cli/format-cost.js';
import type { ObservationKey } from '../../observations/metadata-keys.js';
import { isRecord } from '../../shared/json.js';
import { findRoot, type ShownObservation, type ShownSession, type ShownTurn } from './view-model.js';

/** `3 turns, 1 other agent`: an agent that no turn started is a trace of its own, without a number. */
export function describeTurns({ turns }: ShownSession): string {
  const numbered = turns.filter(({ metadata }) => metadata.turn_number !== undefined).length;
  const others = turns.length - numbered;
  const counts = [numbered > 0 ? plural(numbered, 'turn') : '', others > 0 ? plural(others, 'other agent') : ''];
  return counts.filter((count) => count !== '').join(', ');
}

/** `$0.12`, or `$0.12+` if the session used more than Claude Code's account says. */
export function describeCost({ cost }: ShownSession): string {
  return cost === undefined ? '' : `${formatDollars(cost.dollars)}${cost.hasMore ? '+' : ''}`;
}

/** How long a turn took, until its answer. */
export function describeDuration(turn: ShownTurn): string {
  const { startTime, endTime } = findRoot(turn) ?? turn;
  return formatElapsed(endTime - startTime);
}

/** How long a turn took with the background agents that went on after its answer; empty if there were none. */
export function describeWholeDuration(turn: ShownTurn): string {
  const whole = formatElapsed(turn.endTime - turn.startTime);
  return whole === describeDuration(turn) ? '' : `${whole} with background agents`;
}

/** What a turn or an agent can wait for, by the metadata that says how long. */
export const WAITED_FOR = {
  model_ms: 'model',
  tool_ms: 'tools',
  person_ms: 'people',
  hook_ms: 'hooks',
  other_ms: 'other',
} as const satisfies { readonly [key in ObservationKey]?: string };

/** Says in one line what came of a turn, and where its time went. */
export function describeWork(root: ShownObservation): string {
  return [describeOutcome(root), describeTime(root)].filter((part) => part !== '').join('; ');
}

/** `1.2 s model, 400 ms tools`. */
function describeTime({ metadata }: ShownObservation): string {
  const parts = Object.entries(WAITED_FOR).flatMap(([key, name]) => {
    const ms = metadata[key];
    return typeof ms === 'number' ? [`${formatElapsed(ms)} ${name}`] : [];
  });
  return parts.join(', ');
}

/** `+3 −1, commit 1a2b3c4`: what came of a turn or of a call, if anything did. */
export function describeOutcome({ metadata }: ShownObservation): string {
  const { lines_added, lines_removed, commit_sha, commits, pushed_branch, pr_number, pr_action } = metadata;
  const shas = Array.isArray(commits) ? commits : [commit_sha];
  const hasLines = lines_added !== undefined || lines_removed !== undefined;
  const parts = [
    hasLines && `+${lines_added ?? 0} −${lines_removed ?? 0}`,
    ...shas.map((sha) => typeof sha === 'string' && `commit ${sha}`),
    typeof pushed_branch === 'string' && `pushed ${pushed_branch}`,
    pr_number !== undefined && `PR #${pr_number} ${pr_action ?? ''}`.trim(),
  ];
  return parts.filter((part) => part !== false).join(', ');
}

/** Says in one line what an observation is about, if its name does not. */
export function summarize({ type, input, output, metadata }: ShownObservation): string {
  if (typeof metadata.summary === 'string') return metadata.summary;
  if (type === 'generation') return messagesToText(output);
  return type === 'event' ? messagesToText(input) : '';
}

/** The text of one message or an array of messages. */
export function messagesToText(messages: unknown): string {
  return (Array.isArray(messages) ? messages : [messages])
    .map((message) => (isRecord(message) ? messageToText(message.content) : undefined))
    .filter((text) => text !== undefined && text !== '')
    .join('\n');
}

/** The answer that a schema asked for is an object. */
function messageToText(content: unknown): string | undefined {
  return isRecord(content) ? JSON.stringify(content) : contentToText(content);
}

/** Content as text, with `[image/png]` for an image or document. Returns undefined if any of it is something else. */
export function contentToText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return partToText(content);
  const texts = content.map(partToText);
  return texts.every((text) => text !== undefined) ? texts.join('\n') : undefined;
}

const MEDIA_REFERENCE = /^@@@langfuseMedia:type=([^|]+)\|/;

function partToText(part: unknown): string | undefined {
  const text = isRecord(part) && part.type === 'text' ? part.text : part;
  if (typeof text !== 'string') return undefined;
  const [, type] = MEDIA_REFERENCE.exec(text) ?? [];
  return type === undefined ? text : `[${type}]`;
}
