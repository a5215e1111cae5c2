import { join } from 'node:path';
import * as z from 'zod/mini';
import { isRecord } from '../shared/json.js';
import { readJsonFile } from '../shared/read-file.js';
import { count } from '../shared/schema.js';
import { newSession, type Progress, type Session } from './entry.js';

const SeedEntry = z.object({ last_line: count, turn_count: count, updated: z.catch(z.string(), '') });

/** What the first cc-langfuse has recorded of a session. It did not record where it sent it. */
export interface Seed {
  readonly session: Session;
  readonly progress: Progress;
}

/** Reads the state file of the first cc-langfuse. It is never written. */
export function readSeeds(stateFolder: string): ReadonlyMap<string, Seed> {
  const entries = readJsonFile(join(stateFolder, 'cc-langfuse_state.json'));
  if (!isRecord(entries)) return new Map();
  return new Map(
    Object.entries(entries).flatMap(([id, value]) => {
      const entry = SeedEntry.safeParse(value);
      return entry.success ? [[id, toSeed(id, entry.data)]] : [];
    }),
  );
}

function toSeed(id: string, { last_line: lastLine, turn_count: turnCount, updated }: z.infer<typeof SeedEntry>): Seed {
  return {
    session: { ...newSession(id), seedLine: lastLine },
    progress: { lastLine, turnCount, updated, acknowledged: lastLine > 0 || undefined },
  };
}
