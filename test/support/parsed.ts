/** What a text says in JSON, as Langfuse shows it; what is no JSON as it is. */
export function parsed(text: unknown): unknown {
  if (typeof text !== 'string') return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
