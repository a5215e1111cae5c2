import { type Json, mapValues, withoutUndefined } from '../../shared/json.js';
import type { Observation } from '../model.js';
import { countChars, sanitizeText, sanitizeValue } from './sanitize.js';

type Content = Pick<Observation, 'input' | 'output' | 'metadata'>;

/** Metadata is cut only if the rest must go altogether. */
const SHORTEST_METADATA_CHARS = 40;

/**
 * Cuts what was built already: input and output to about `maxChars` each, with the marks and figures of other limits. If that is 0,
 * only the marks are left of them, and the beginnings of the texts in the metadata.
 */
export function cutContent({ input, output, metadata }: Content, maxChars: number): Content {
  const [cutInput, cutOutput] = [cutField(input, maxChars), cutField(output, maxChars)];
  const cutText = (value: Json) => sanitizeValue(value, undefined, SHORTEST_METADATA_CHARS).value;
  return {
    input: cutInput.value,
    output: cutOutput.value,
    metadata: {
      ...withoutUndefined({ input_full_chars: cutInput.fullChars, output_full_chars: cutOutput.fullChars }),
      // The figures of a first cut are those of the whole field.
      ...(maxChars > 0 ? metadata : mapValues(metadata, cutText)),
    },
  };
}

function cutField(value: Json | undefined, maxChars: number) {
  if (value === undefined || value === null) return { value, fullChars: undefined };
  if (maxChars > 0) return sanitizeValue(value, undefined, maxChars);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { value: sanitizeText(text, undefined, 0), fullChars: countChars(value) };
}
