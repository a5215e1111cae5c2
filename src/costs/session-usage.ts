import { TOKEN_KINDS, type TokenKind } from '../transcript/file/token-kinds.js';
import type { AccountPoint } from '../transcript/sessions/cost-account.js';

/** What is counted of a response. */
export type UsedKind = TokenKind | 'web_search_requests';
export const USED_KINDS: readonly UsedKind[] = [...TOKEN_KINDS, 'web_search_requests'];
export type Used = { readonly [kind in UsedKind]: number };

/** What decides about the price of a response, beside its model. */
export interface PriceChoice {
  readonly isFast: boolean;
  /** Whether it had to run in the US. */
  readonly isInUs: boolean;
}
export const STANDARD_PRICES: PriceChoice = { isFast: false, isInUs: false };
export const PRICE_CHOICES = ['isFast', 'isInUs'] as const satisfies (keyof PriceChoice)[];

/** What responses of a session used that differ only in their counts. */
export interface Use extends PriceChoice {
  readonly at: number;
  readonly model: string;
  readonly branch: string;
  readonly isAgent: boolean;
  /** The first line of the account that includes it; undefined if none does: Claude Code writes one only when a process ends. */
  readonly point?: number | undefined;
  /** Whether the prompts were so long that the model costs more. */
  readonly isLong?: boolean;
  readonly used: Used;
}

/** What a session used for a task, which is a thread of a turn. A name is empty if there is none. */
export interface TaskUse extends Use {
  /** The type of the subagent. */
  readonly agent: string;
  readonly skill: string;
  /** The slash command that began the turn. */
  readonly command: string;
  /** The number of the turn; 0 if it is not known. */
  readonly turn: number;
  /** The byte of the transcript at which the turn's prompt begins. */
  readonly promptAt?: number | undefined;
}

/** What a session used for a part of what the model read and wrote. */
export interface PartUse extends Use {
  /** The tool whose call or result it was, or another part. */
  readonly part: string;
  /** Whether the line of the request says which messages it had. */
  readonly isExact: boolean;
}

/** What a session used, by what caused it. Each list has all of it. */
export interface UsageCauses {
  readonly tasks: readonly TaskUse[];
  readonly parts: readonly PartUse[];
}

/** A line of the account, with the time and the branch of the last response before it. */
export interface PlacedPoint {
  readonly point: AccountPoint;
  readonly at: number;
  readonly branch: string;
}

/** What a session used and what that cost, as far as its own files say. */
export interface SessionUsage {
  readonly sessionId: string;
  readonly path: string;
  /** The folder in which it began. */
  readonly folder: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** When its own part began, after what it may have copied. */
  readonly ownFrom: number;
  /** The session from which this one was forked. */
  readonly parent: string | undefined;
  /** What a fork and its parent have in common. */
  readonly firstPrompt: string | undefined;
  readonly points: readonly PlacedPoint[];
  readonly uses: readonly Use[];
  /** Undefined unless they were asked for. */
  readonly causes?: UsageCauses | undefined;
}

/** A session's responses by their ids, with those that it copied from another session. */
export interface SessionScan extends Omit<SessionUsage, 'uses'> {
  readonly responses: ReadonlyMap<string, Use>;
  /** The files of its subagents that could not be read, or not to their end. */
  readonly unreadable: readonly { readonly path: string; readonly error: unknown }[];
}

export function mapUsed<T>(change: (kind: UsedKind) => T): { readonly [kind in UsedKind]: T } {
  const changed: { [kind in UsedKind]?: T } = {};
  for (const kind of USED_KINDS) changed[kind] = change(kind);
  return changed as { readonly [kind in UsedKind]: T };
}

/** The id of an advisor's use has this after the id of the response that asked it. */
export const ADVISOR = ' advisor ';
