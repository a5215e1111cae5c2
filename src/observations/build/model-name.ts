const BEDROCK_ARN = /^arn:aws[\w-]*:bedrock:[^:]*:\d*:(?:inference-profile|foundation-model)\/(.+)$/;
const BEDROCK = /^(?:[a-z]{2,8}(?:-[a-z]{2,8})*\.)?anthropic\.(claude-[\w.-]+?)(?:-v\d+(?::\d+)?)?$/;
const VERTEX = /^(claude-[a-z\d-]+?)(?:-v\d+)?@(\d{8}|default|latest)$/i;
/** Names since 4.6 have no date. Those of Claude 3 have the family last (`claude-3-5-sonnet`), and always a date. */
const WITHOUT_DATE = /^claude-[a-z]+-(?:4-(?:[6-9]|\d\d)|[5-9]|\d\d)(?:-\d{1,2})?$/;

/**
 * Returns the name by which Anthropic knows a model, and Langfuse's price list with it: without the mark of the long context, and
 * without what Bedrock and Vertex add. The ARN of an application inference profile does not say which model it is.
 */
export function nameModel(name: string): string {
  const short = name.replace(/\[1m\]$/i, '');
  const [, profile = short] = BEDROCK_ARN.exec(short) ?? [];
  const [, onBedrock] = BEDROCK.exec(profile) ?? [];
  if (onBedrock !== undefined) return onBedrock;
  const [, onVertex, date = ''] = VERTEX.exec(short) ?? [];
  if (onVertex === undefined) return short;
  return /^\d/.test(date) && !WITHOUT_DATE.test(onVertex) ? `${onVertex}-${date}` : onVertex;
}
