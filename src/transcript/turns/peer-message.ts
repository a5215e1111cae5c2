import { isRecord, parseJson } from '../../shared/json.js';

const START = /^(?:Another Claude session sent a message[^\n]*:\s*)?<(?:teammate|cross-session|agent)-message\b/;
const MESSAGE = /<(teammate|cross-session|agent)-message\b([^>]*)>([\s\S]*?)<\/\1-message>/g;
/** By the kind of the message: the sender's name, or else its address. */
const SENDERS = [/\bfrom-name="([^"]+)"/, /\bteammate_id="([^"]+)"/, /\bfrom="([^"]+)"/];

/**
 * Returns what a teammate, an agent or another session has written, without the tags and instructions around it; undefined if the
 * text is not such a message.
 */
export function readPeerMessage(text: string): string | undefined {
  if (!START.test(text)) return undefined;
  const messages = Array.from(text.matchAll(MESSAGE), ([, , attributes = '', words = '']) => {
    const [, sender] = SENDERS.map((pattern) => pattern.exec(attributes)).find((found) => found !== null) ?? [];
    return [sender, readWords(words.trim())].filter((part) => part !== undefined).join(': ');
  });
  return messages.length > 0 ? messages.join('\n') : undefined;
}

/** A teammate that has ended its turn sends its answer as a field of JSON. */
function readWords(words: string): string {
  const value = parseJson(words);
  return isRecord(value) && typeof value.result === 'string' ? value.result : words;
}
