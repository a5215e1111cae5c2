import { mapValues, withoutUndefined } from '../../shared/json.js';
import { applyCapture, type Capture, type Content } from '../content/capture.js';
import type { SanitizedValue, Sanitizer } from '../content/limits.js';
import type { Media, Observation, Trace } from '../model.js';
import { deriveSpanId } from './ids.js';

/** What the observations of a turn, or of a subagent, have in common. */
export interface Context {
  readonly trace: Trace;
  /** The agent below which they hang. */
  readonly agentSpan: string;
  /** What its lines are called by where they have no name: the session, or the agent. */
  readonly place: string;
  readonly maxChars: number;
  readonly fit: Sanitizer;
  readonly capture: Capture;
  /** Whether images and documents may leave. */
  readonly media: boolean;
}

const STATUS_CHARS = 500;
export const NAME_CHARS = 200;
const METADATA_CHARS = 1_000;

/** An observation of the turn: its fields within their limits, its strings fit to be sent. */
export function buildObservation(whole: Content, { trace, maxChars, fit, capture }: Context): Observation {
  const content = applyCapture(whole, capture);
  const { statusMessage, modelParameters } = content;
  const input = content.input === undefined ? undefined : fit.value(content.input, maxChars);
  const output = content.output === undefined ? undefined : fit.value(content.output, maxChars);
  const media = [...mediaOf('input', input), ...mediaOf('output', output)];
  const cutFields = withoutUndefined({ input_full_chars: input?.fullChars, output_full_chars: output?.fullChars });
  return {
    ...content,
    name: fit.text(content.name, NAME_CHARS),
    model: content.model && fit.text(content.model, NAME_CHARS),
    trace,
    input: input?.value,
    output: output?.value,
    ...(media.length > 0 && { media }),
    statusMessage: statusMessage && fit.text(statusMessage.trimStart().split('\n', 1).join(), STATUS_CHARS),
    modelParameters:
      modelParameters &&
      mapValues(modelParameters, (value) => (typeof value === 'string' ? fit.text(value, NAME_CHARS) : value)),
    metadata: { ...mapValues(content.metadata, (value) => fit.value(value, METADATA_CHARS).value), ...cutFields },
  };
}

function mediaOf(field: Media['field'], content: SanitizedValue | undefined): Media[] {
  return content?.media.map((media) => ({ ...media, field })) ?? [];
}

/** The id of a span by what the transcript calls it, or where it does not, by where it stands. */
export function observationId(
  { trace, place }: Context,
  kind: 'generation' | 'tool' | 'event',
  nativeId: string | undefined,
  ...lineAndIndex: readonly number[]
): string {
  return deriveSpanId(trace.scope, kind, nativeId ?? [place, ...lineAndIndex].join(':'));
}
