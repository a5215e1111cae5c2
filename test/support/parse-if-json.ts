/** Parses a text that is JSON, as Langfuse does before it shows it; returns anything else as it is. */
export function parseIfJson(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
