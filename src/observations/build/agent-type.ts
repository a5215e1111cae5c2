import { isRecord } from '../../shared/json.js';
import type { ToolCall } from '../../transcript/turns/turn.js';

/** The kind of agent that a call has started, as its result tells, or else as it was asked for. */
export function findAgentType(call: ToolCall): string | undefined {
  return call.result?.details?.agentType ?? requestedAgentType(call);
}

/** The kind of agent that a call asks for. */
export function requestedAgentType({ input }: ToolCall): string | undefined {
  const type = isRecord(input) ? input.subagent_type : undefined;
  return typeof type === 'string' && type !== '' ? type : undefined;
}
