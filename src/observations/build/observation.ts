import { mapValues, withoutUndefined } from '../../shared/json.js';
import { applyCapture } from '../content/capture.js';
import type { MessageSettings } from '../content/messages.js';
import { sanitizeText, sanitizeValue } from '../content/sanitize.js';
import type { Observation, ObservationDraft, Trace } from '../model.js';

/** What all observations of a turn, or of a subagent, have in common. */
export interface BuildContext extends MessageSettings {
  readonly trace: Trace;
  /** The agent observation that they belong to. */
  readonly agentSpanId: string;
  /** The type of the subagent, if it is one. */
  readonly agentType?: string | undefined;
  /** The session's id or the agent's key. With the line, it identifies what has no id in the transcript. */
  readonly fileId: string;
}

/** An observation that is built when it is sent. */
export interface UnbuiltObservation {
  /** The line that completes it. */
  readonly line: number;
  /** What the transcript calls it: the id of a response or call, or a note's key. */
  readonly key: string | undefined;
  /** Returns undefined if there is nothing to be sent. */
  readonly build: () => Observation | undefined;
}

/** Selects the observations of a turn or a subagent that are to be built, in the order of their lines. */
export type Selection = (parts: readonly UnbuiltObservation[]) => readonly UnbuiltObservation[];

export const NAME_CHARS = 200;
const STATUS_CHARS = 500;
const METADATA_CHARS = 1_000;

/** Builds an observation that can be sent: without what may not leave, its texts sanitized and within their limits. */
export function buildObservation(
  { trace, maxChars, redact, capture }: BuildContext,
  draft: ObservationDraft,
): Observation {
  const captured = applyCapture(draft, capture);
  const { statusMessage, modelParameters } = captured;
  const sanitize = (content: unknown) => (content === undefined ? undefined : sanitizeValue(content, redact, maxChars));
  const [input, output] = [sanitize(captured.input), sanitize(captured.output)];
  const media = [
    ...(input?.media.map((file) => ({ ...file, field: 'input' as const })) ?? []),
    ...(output?.media.map((file) => ({ ...file, field: 'output' as const })) ?? []),
  ];
  const shorten = (name: string) => sanitizeText(name, redact, NAME_CHARS);
  return {
    ...captured,
    name: shorten(captured.name),
    model: captured.model && shorten(captured.model),
    trace,
    input: input?.value,
    output: output?.value,
    ...(media.length > 0 && { media }),
    statusMessage: statusMessage && sanitizeText(statusMessage.trimStart().split('\n', 1).join(), redact, STATUS_CHARS),
    modelParameters:
      modelParameters &&
      mapValues(withoutUndefined(modelParameters), (value) => (typeof value === 'string' ? shorten(value) : value)),
    metadata: {
      ...mapValues(withoutUndefined(captured.metadata), (value) => sanitizeValue(value, redact, METADATA_CHARS).value),
      ...withoutUndefined({ input_full_chars: input?.fullChars, output_full_chars: output?.fullChars }),
    },
  };
}
