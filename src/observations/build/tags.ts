import { findAgentType, findTextArgument, type PromptContext, type Turn } from '../../transcript/turns/turn.js';
import { shortenPullRequest } from './pull-request.js';

/** The kinds of tags that are added to the user's own. */
export const TAG_KINDS = ['claude-code', 'skill', 'agent', 'mcp', 'repo', 'branch', 'pr', 'resource'] as const;
export type TagKind = (typeof TAG_KINDS)[number];

/** Of one kind there are at most so many tags: each observation has all of them. */
const MOST_OF_A_KIND = 10;
/** What git names if no branch is checked out. */
const NO_BRANCH = 'HEAD';

/**
 * Collects the tags of a turn: `claude-code`, the skills, types of subagents and MCP servers that it used, its repository and
 * branch, and the pull requests of the session and its own. All observations that are sent together have the same tags: in
 * v4 a trace has the tags of the span that came in last, and those of one request come in in any order. What a turn uses
 * after a part of it was sent is on its later spans, of which the root is one.
 */
export function collectTags(
  turn: Turn,
  kinds: readonly TagKind[],
  repository: string | undefined,
  earlier: Used = {},
): string[] {
  const used = listUsed(turn, earlier);
  return buildTags(kinds, {
    ...used,
    ...namePlace(turn.context, repository),
    pr: [shortenPullRequest(turn.session.pullRequest), ...(used.pr ?? [])],
  });
}

/** Names the repository and the branch that a turn or an agent has worked on. */
export function namePlace({ gitBranch }: Pick<PromptContext, 'gitBranch'>, repository: string | undefined): Names {
  return { repo: [repository], branch: gitBranch === NO_BRANCH ? [] : [gitBranch] };
}

/** The skills, types of subagents, MCP servers and pull requests, by the kind of their tags. */
export type Used = {
  readonly [kind in Exclude<TagKind, 'claude-code' | 'repo' | 'branch' | 'resource'>]?: readonly string[] | undefined;
};

/** Adds what a turn used, or a part of it, to what the parts before did. */
export function listUsed({ skill, responses }: Pick<Turn, 'skill' | 'responses'>, earlier: Used): Used {
  const calls = responses.flatMap((response) => response.calls);
  const skills = calls.map((call) => (call.name === 'Skill' ? findTextArgument(call, 'skill') : undefined));
  const merge = (before: readonly string[] | undefined, names: readonly (string | undefined)[]) =>
    [...new Set([...(before ?? []), ...names])].filter((name) => name !== undefined);
  return {
    skill: merge(earlier.skill, [skill, ...skills]),
    agent: merge(earlier.agent, calls.map(findAgentType)),
    mcp: merge(
      earlier.mcp,
      calls.map(({ name }) => /^mcp__(.+?)__/.exec(name)?.[1]),
    ),
    pr: merge(
      earlier.pr,
      calls.map(({ result }) => shortenPullRequest(result?.details?.gitOperation?.pr?.url)),
    ),
  };
}

type Names = { readonly [kind in TagKind]?: readonly (string | undefined)[] | undefined };

export function buildTags(kinds: readonly TagKind[], used: Names): string[] {
  return kinds.flatMap((kind) => {
    if (kind === 'claude-code') return [kind];
    const names = [...new Set(used[kind])].filter((name) => name !== undefined);
    return names.slice(0, MOST_OF_A_KIND).map((name) => `${kind}:${name}`);
  });
}
