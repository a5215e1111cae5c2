import { isRecord } from '../../shared/json.js';
import type { ToolCall, Turn } from '../../transcript/turns/turn.js';
import { findAgentType } from './agent-type.js';

/** What traces are tagged with beside the user's own tags. */
export const TAG_KINDS = ['claude-code', 'skill', 'agent', 'mcp'] as const;
export type TagKind = (typeof TAG_KINDS)[number];

/**
 * That it is of Claude Code, and which skills, kinds of subagents and MCP servers the turn used. All that is sent of it at
 * a time has the same: in v4 a trace has the tags of whichever of its spans came in last, and those of one request come in
 * in any order. What a turn used only after it was sent, its later spans tell, its root among them.
 */
export function collectTags({ skill, responses }: Turn, kinds: readonly TagKind[]): string[] {
  const calls = responses.flatMap((response) => response.calls);
  return tagged(kinds, {
    skill: [skill, ...calls.map(skillOf)],
    agent: calls.map(findAgentType),
    mcp: calls.map(serverOf),
  });
}

export function collectAgentTags(type: string | undefined, kinds: readonly TagKind[]): string[] {
  return tagged(kinds, { agent: [type] });
}

type Used = { readonly [kind in TagKind]?: readonly (string | undefined)[] };

function tagged(kinds: readonly TagKind[], used: Used): string[] {
  return kinds.flatMap((kind) =>
    kind === 'claude-code'
      ? [kind]
      : [...new Set(used[kind])].flatMap((name) => (name === undefined ? [] : [`${kind}:${name}`])),
  );
}

function skillOf({ name, input }: ToolCall): string | undefined {
  return name === 'Skill' && isRecord(input) && typeof input.skill === 'string' ? input.skill : undefined;
}

function serverOf({ name }: ToolCall): string | undefined {
  return /^mcp__(.+?)__/.exec(name)?.[1];
}
