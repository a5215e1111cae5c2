import { findTurnCosts, type SessionCost } from '../../costs/turn-costs.js';
import type { Observation, Trace } from '../../observations/model.js';
import { groupBy } from '../../shared/group-by.js';
import type { TokenKind } from '../../transcript/file/token-kinds.js';

/** An observation as it would be sent, without what only the sender needs. */
export type SentObservation = Omit<Observation, 'line' | 'media' | 'requestRef'>;

/** What the tree and the page show of an observation. */
export type ShownObservation = Omit<SentObservation, 'trace'>;

type Span = { readonly startTime: number; readonly endTime: number };

/** A turn, or a subagent that no turn started. It lasts to the last end: a background agent ends after its turn. */
export interface ShownTurn extends Span {
  readonly traceId: string;
  readonly name: string;
  readonly metadata: Trace['metadata'];
  /** By Claude Code's own account, if that says what this turn cost. */
  readonly dollars?: number | undefined;
  /** By time. */
  readonly observations: readonly ShownObservation[];
}

export interface ShownSession {
  readonly sessionId: string;
  readonly title: string | undefined;
  readonly folder: string | undefined;
  readonly cost?: Pick<SessionCost, 'dollars' | 'hasMore'> | undefined;
  /** By time. */
  readonly turns: readonly ShownTurn[];
}

export function groupSessions(
  observations: Iterable<SentObservation>,
  costs: ReadonlyMap<string, SessionCost> = new Map(),
): ShownSession[] {
  const sessions = groupBy(observations, ({ trace }) => trace.sessionId);
  return [...sessions].map(([sessionId, ofSession]) => {
    // A caller's trace may hold several turns, each with a scope of its own.
    const traces = [...groupBy(ofSession, ({ trace }) => trace.scope).values()].map(buildTurn).toSorted(compareTimes);
    const cost = costs.get(sessionId);
    const turns = cost ? addCosts(traces, cost) : traces;
    // The last title counts: a session's title changes as it goes on.
    const title = turns.map((turn) => findRoot(turn)?.metadata.session_title).findLast((each) => each !== undefined);
    const folder = turns[0]?.metadata.cwd;
    return {
      sessionId,
      title: typeof title === 'string' ? title : undefined,
      folder: typeof folder === 'string' ? folder : undefined,
      cost: cost && { dollars: cost.dollars, hasMore: cost.hasMore },
      turns,
    };
  });
}

function addCosts(turns: readonly ShownTurn[], cost: SessionCost): ShownTurn[] {
  const costs = findTurnCosts(
    cost,
    turns.filter(({ metadata }) => metadata.turn_number !== undefined),
  );
  return turns.map((turn) => ({ ...turn, dollars: costs.get(turn) }));
}

function buildTurn(observations: readonly [SentObservation, ...SentObservation[]]): ShownTurn {
  const { id, name, metadata } = observations[0].trace;
  const shown = observations.toSorted(compareTimes).map(({ trace: _, ...observation }) => observation);
  return {
    traceId: id,
    // Traces have the same name as others of their repository.
    name: findRoot({ observations: shown })?.name ?? name,
    metadata,
    startTime: observations.reduce((first, { startTime }) => Math.min(first, startTime), Number.POSITIVE_INFINITY),
    endTime: observations.reduce((last, { endTime }) => Math.max(last, endTime), 0),
    observations: shown,
  };
}

/** By start; at the same start, the one that ends later comes first, since it contains the other. */
function compareTimes(a: Span, b: Span): number {
  return a.startTime - b.startTime || b.endTime - a.endTime;
}

/** The agent that is below none of the turn's own observations. Its parent, if it has one, is a span of the caller. */
export function findRoot({ observations }: Pick<ShownTurn, 'observations'>): ShownObservation | undefined {
  const ids = new Set(observations.map(({ id }) => id));
  return observations.find(({ type, parentId }) => type === 'agent' && !ids.has(parentId ?? ''));
}

/** A row of a turn's tree. */
export interface Branch {
  readonly observation: ShownObservation;
  /** 0 for the root. */
  readonly depth: number;
  /** For each level from the root down to this row: whether another sibling follows. */
  readonly hasNext: readonly boolean[];
  readonly hasChildren: boolean;
  /** An agent's tokens include those of everything below it. */
  readonly tokens: number;
}

/** Lists a turn's observations as the rows of a tree: each is followed by its children. */
export function buildTree({ observations }: ShownTurn): Branch[] {
  const ids = new Set(observations.map(({ id }) => id));
  // An observation whose parent is missing is a root, too.
  const children = groupBy(observations, ({ parentId }) => (ids.has(parentId ?? '') ? parentId : undefined));
  const buildBranches = (parentId: string | undefined, above: readonly boolean[]): Branch[] => {
    const siblings = children.get(parentId) ?? [];
    return siblings.flatMap((observation, index) => {
      const hasNext = [...above, index < siblings.length - 1];
      const below = buildBranches(observation.id, hasNext);
      const counted = observation.type === 'agent' ? below.map((branch) => branch.observation) : [];
      const tokens = totalTokens(countTokensByKind([observation, ...counted]));
      return [{ observation, depth: above.length, hasNext, hasChildren: below.length > 0, tokens }, ...below];
    });
  };
  return buildBranches(undefined, []);
}

/** The kinds of tokens that have a price of their own, with their names for a person. */
export const TOKEN_NAMES = {
  input: 'input',
  cache_read_input_tokens: 'cache read',
  cache_creation_input_tokens: 'cache write',
  input_cache_creation_5m: '5m cache write',
  input_cache_creation_1h: '1h cache write',
  output: 'output',
} as const satisfies { readonly [kind in TokenKind]: string };

export interface Tokens {
  readonly kind: TokenKind;
  readonly tokens: number;
}

/** Adds up the tokens of observations; kinds without any are left out. */
export function countTokensByKind(observations: readonly ShownObservation[]): Tokens[] {
  return (Object.keys(TOKEN_NAMES) as TokenKind[]).flatMap((kind) => {
    const tokens = observations.reduce((sum, { usage }) => sum + (usage?.[kind] ?? 0), 0);
    return tokens > 0 ? [{ kind, tokens }] : [];
  });
}

export function totalTokens(tokens: readonly Tokens[]): number {
  return tokens.reduce((sum, each) => sum + each.tokens, 0);
}
