import type { Json } from '../../shared/json.js';
import { buildMark } from '../content/messages.js';
import { countChars } from '../content/sanitize.js';
import type { Media, Observation } from '../model.js';

/** What was said in a turn, or by an agent, before a generation: its input begins with it. */
export interface Conversation {
  /** How many messages there were. */
  readonly count: number;
  readonly messages: readonly Json[];
  readonly media: readonly Media[];
  readonly chars: number;
}

export const NOTHING_SAID: Conversation = { count: 0, messages: [], media: [], chars: 0 };

/** The bytes of each are kept in memory. */
const MAX_MEDIA = 20;

/** Generations whose inputs begin with what was said before them. */
export interface Continued {
  readonly builds: readonly (() => Observation)[];
  /** What was said when all of them had ended. */
  readonly end: () => Conversation;
}

/**
 * Continues a conversation with generations that are built with what they answer as their inputs. Each repeats the one before it,
 * word for word: by that Langfuse knows that they are one conversation. One is built only if it or a later one is asked for.
 */
export function continueConversation(
  generations: readonly (() => Observation)[],
  before: Conversation,
  maxChars: number,
): Continued {
  let [next, said] = [0, before];
  const advance = () => {
    const generation = generations[next]?.();
    next += 1;
    const continued = generation && say(generation, said, maxChars);
    said = continued?.after ?? said;
    return continued?.generation;
  };
  const build = (place: number): Observation => {
    if (place < next) [next, said] = [0, before];
    for (;;) {
      const generation = advance();
      if (generation && next > place) return generation;
    }
  };
  const end = () => {
    while (next < generations.length) advance();
    return said;
  };
  return { builds: generations.map((_, place) => () => build(place)), end };
}

/** If an input would be too long, the conversation begins anew. Without its oldest messages, each would be a conversation of its own. */
function say(own: Observation, before: Conversation, maxChars: number) {
  const { input, output, media = [] } = own;
  if (!Array.isArray(input)) return { generation: own, after: before };
  const chars = countChars(input);
  const isTooLong = before.chars + chars > maxChars || before.media.length + media.length > MAX_MEDIA;
  const kept = isTooLong && before.count > 0 ? beginAnew(before) : before;
  const messages = [...kept.messages, ...input];
  const all = [...kept.media, ...media];
  const said = output === undefined ? [] : [output];
  return {
    generation: { ...own, input: messages, ...(all.length > 0 && { media: all }) },
    after: {
      count: before.count + input.length + said.length,
      messages: [...messages, ...said],
      media: all,
      chars: kept.chars + chars + countChars(said),
    },
  };
}

function beginAnew({ count }: Conversation): Conversation {
  const mark = buildMark(count, 'earlier message', 'left out');
  return { ...NOTHING_SAID, messages: [mark], chars: countChars(mark) };
}
