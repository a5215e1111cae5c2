import { findTextArgument, type Turn } from '../../transcript/turns/turn.js';
import { findAgentType } from './agents.js';

/** The kinds of tags that are added to the user's own. */
export const TAG_KINDS = ['claude-code', 'skill', 'agent', 'mcp', 'resource'] as const;
export type TagKind = (typeof TAG_KINDS)[number];

/**
 * Collects the tags of a turn: `claude-code`, and the skills, types of subagents and MCP servers that it used. All
 * observations that are sent together have the same tags: in v4 a trace has the tags of the span that came in last, and
 * those of one request come in in any order. What a turn uses after a part of it was sent is on its later spans, of
 * which the root is one.
 */
export function collectTags({ skill, responses }: Turn, kinds: readonly TagKind[]): string[] {
  const calls = responses.flatMap((response) => response.calls);
  return buildTags(kinds, {
    skill: [skill, ...calls.map((call) => (call.name === 'Skill' ? findTextArgument(call, 'skill') : undefined))],
    agent: calls.map(findAgentType),
    mcp: calls.map(({ name }) => /^mcp__(.+?)__/.exec(name)?.[1]),
  });
}

type Used = { readonly [kind in TagKind]?: readonly (string | undefined)[] };

export function buildTags(kinds: readonly TagKind[], used: Used): string[] {
  return kinds.flatMap((kind) => {
    if (kind === 'claude-code') return [kind];
    const names = [...new Set(used[kind])].filter((name) => name !== undefined);
    return names.map((name) => `${kind}:${name}`);
  });
}
