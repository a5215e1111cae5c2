import { HookPayload as KnownPayload } from '../../src/commands/hook/payload.js';
import type { Line } from '../../src/transcript/file/line.js';
import { readLines, withReader } from '../../src/transcript/file/lines.js';
import { UnknownCounts } from '../../src/transcript/file/unknown.js';
import type { HookPayload } from './claude-home.js';
import { HOOK_EVENTS, PAYLOAD_FIELDS } from './known-shapes.js';

/** Lists what neither the program's schemas nor known-shapes.ts contain, each once. */
export function unknownShapes(transcripts: readonly string[], payloads: readonly HookPayload[]): string[] {
  const counts = new UnknownCounts();
  for (const path of transcripts) withReader(path, (reader) => counts.addAll(reader.lines()));
  const inLines = [...counts.names, ...transcripts.flatMap((path) => [...readLines(path)].flatMap(unknownOf))];
  return [...new Set([...inLines, ...payloads.flatMap(unknownFields)])].toSorted();
}

function unknownOf(line: Line): string[] {
  if (line.kind === 'unreadable') return [`a line that cannot be read (${line.reason})`];
  const event = line.kind === 'attachment' ? line.fields.attachment?.hookEvent : undefined;
  return unlessKnown('event of a hook attachment', event, HOOK_EVENTS);
}

function unknownFields({ hook_event_name: event, ...fields }: HookPayload): string[] {
  const known = [...Object.keys(KnownPayload.shape), ...(PAYLOAD_FIELDS[event] ?? [])];
  return [
    ...unlessKnown('hook event', event, Object.keys(PAYLOAD_FIELDS)),
    ...Object.keys(fields).flatMap((field) => unlessKnown(`field of ${event}'s payload`, field, known)),
  ];
}

function unlessKnown(what: string, name: string | undefined, known: readonly string[]): string[] {
  return name === undefined || known.includes(name) ? [] : [`${what}: ${name}`];
}
