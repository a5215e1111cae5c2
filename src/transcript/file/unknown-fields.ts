import { isRecord } from '../../shared/json.js';
import { AssistantFields, AttachmentFields, RequestFields, SystemFields, TokenCounts, UserFields } from './schema.js';

const ON_ALL = 'type timestamp userType version gitBranch entrypoint slug agentId session_id sessionKind';

/** By the type of the line: the fields that are read, and those that are known but not read. */
const FIELDS: ReadonlyMap<unknown, ReadonlySet<string>> = new Map([
  [
    'user',
    listNames(
      `${ON_ALL} message carriesOnTurnOf classifierMetaLines imagePasteIds interruptedMessageId
      isVisibleInTranscriptOnly mcpCallNotReadOnly mcpMeta permissionDecision planContent queuePriority
      queueSkipAttachments queueSkipSlashCommands refusedMessageId repeatsCompactSummary sandboxed scheduledFireId
      scheduledTaskId sourceToolAssistantUUID sourceToolUseID summarizeMetadata summarizedTurnPromptUuids
      thinkingMetadata todos toolDenialBeforeRun toolEndsTurn turnPosition wakeupSource`,
      UserFields,
    ),
  ],
  [
    'assistant',
    listNames(
      `${ON_ALL} apiErrorType error failedResponseHadNoToolCall madeBy perTurnEffort promptCacheRequested requestedModel
      serverClassifierRequest thinkingDisplay`,
      AssistantFields,
    ),
  ],
  [
    'system',
    listNames(
      `${ON_ALL} commandRun cron durationMs failedHookErrorIndexes hasOutput hookAdditionalContext hookCount hookErrors
      hookInfos isDisplayOnly level messageCount pendingBackgroundAgentCount pendingWorkflowCount preventedContinuation
      prompt source stopReason taskId toolUseID upgradeNudge url`,
      SystemFields,
    ),
  ],
  [
    'attachment',
    listNames(`${ON_ALL} rendered renderedBesideToolResult renderedInHumanTurn renderedRole`, AttachmentFields),
  ],
  [
    'api-request',
    listNames('type timestamp version agentId sessionId cacheControl querySource requestDigest', RequestFields),
  ],
]);
const MESSAGE = listNames(`id type role model content usage stop_reason stop_sequence stop_details container
  context_management diagnostics service_tier`);
const USAGE = listNames('fallback_credit', TokenCounts);
/** What Claude Code calls something is a short name. Anything else could be private content. */
const NAME = /^[a-z][\w-]{0,39}$/i;

/** The fields of a line that this version does not know. */
export function findUnknownFields(line: unknown): readonly string[] {
  const { type, message } = isRecord(line) ? line : {};
  const known = FIELDS.get(type);
  if (!known) return [];
  const { usage } = isRecord(message) ? message : {};
  return [
    ...listOthers(line, known, `${type} field`),
    ...listOthers(message, MESSAGE, 'message field'),
    ...listOthers(usage, USAGE, 'usage field'),
  ];
}

function listOthers(value: unknown, known: ReadonlySet<string>, kind: string): string[] {
  const others = isRecord(value) ? Object.keys(value).filter((name) => !known.has(name)) : [];
  return others.map((name) => `${kind} ${shortName(name)}`);
}

export function shortName(name: string): string {
  return NAME.test(name) ? name : '?';
}

export function listNames(names: string, read: { readonly shape: object } = { shape: {} }): ReadonlySet<string> {
  return new Set([...names.split(/\s+/), ...Object.keys(read.shape)]);
}
