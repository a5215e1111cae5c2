import type { Note } from '../../transcript/turns/turn.js';
import { listEvent } from './events.js';
import { deriveSpanId } from './ids.js';
import { nameModel } from './model-name.js';
import { type BuildContext, buildObservation, type UnbuiltObservation } from './observation.js';
import { countUsage, describeContext, describeGeo } from './usage.js';

/** No request takes longer. */
const LONGEST_MS = 3_600_000;

/** Lists the event of a note, and of a compaction the generation that made it, if its tokens are known. */
export function listNote(note: Note, context: BuildContext): UnbuiltObservation[] {
  const event = listEvent(note, context);
  if (note.kind !== 'compaction' || !note.cost?.exact) return [event];
  const { line, at, uuid, cost, fields } = note;
  const { model, usage } = note.cost.exact;
  const build = () =>
    buildObservation(context, {
      type: 'generation',
      id: deriveSpanId(context.trace, 'generation', `compaction:${uuid ?? `${context.fileId}:${line}`}`),
      parentId: context.agentSpanId,
      name: 'compaction',
      startTime: at - findDuration(fields.compactMetadata?.durationMs),
      endTime: at,
      metadata: { compaction_trigger: fields.compactMetadata?.trigger, ...describeContext(usage) },
      level: 'DEFAULT',
      model: nameModel(model),
      modelParameters: describeGeo(usage),
      usage: countUsage(usage),
      line: cost?.line ?? line,
    });
  return [event, { ...event, build }];
}

function findDuration(ms = 0): number {
  return Number.isSafeInteger(ms) && ms >= 0 && ms <= LONGEST_MS ? ms : 0;
}
