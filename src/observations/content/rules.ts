import type { Redact } from '../redaction/redact.js';
import { createSanitizer, type Sanitizer } from './sanitize.js';

/** How much of what was said and done leaves the machine. */
export type Capture = 'full' | 'no_tool_io' | 'metadata';

/** The settings that restrict content. */
export interface ContentSettings {
  /** How many characters of a field are sent. */
  readonly maxChars: number;
  /** Undefined if secrets are sent as they are. */
  readonly redact: Redact | undefined;
  readonly capture: Capture;
  /** Whether images and documents are uploaded. */
  readonly media: boolean;
}

/** The same, as the functions that build content take it. */
export interface ContentRules extends Omit<ContentSettings, 'redact'> {
  readonly sanitizer: Sanitizer;
}

export function createContentRules({ maxChars, redact, capture, media }: ContentSettings): ContentRules {
  return { maxChars, capture, media, sanitizer: createSanitizer(redact) };
}
