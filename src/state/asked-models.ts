import { join } from 'node:path';
import * as z from 'zod/mini';
import { replaceOwnFile } from '../shared/atomic-write.js';
import { attempt } from '../shared/attempt.js';
import { readJsonFile } from '../shared/read-file.js';
import { optional } from '../shared/schema.js';

/** When a server was last asked for its models, in ms since 1970, and what it answered; undefined if it did not. */
const Asked = z.object({ destination: z.string(), at: z.number(), models: optional(z.unknown()) });
type Asked = z.infer<typeof Asked>;

/** Of the destination that was asked last: who changes between two asks again. */
function askedPath(stateFolder: string): string {
  return join(stateFolder, 'cc-langfuse_models.json');
}

export function readAsked(stateFolder: string, destination: string): Asked | undefined {
  const { data } = Asked.safeParse(readJsonFile(askedPath(stateFolder)));
  return data?.destination === destination ? data : undefined;
}

/** Returns whether it could be written. */
export function saveAsked(stateFolder: string, asked: Asked): boolean {
  return (
    attempt(() => {
      replaceOwnFile(askedPath(stateFolder), `${JSON.stringify(asked)}\n`);
      return true;
    }) ?? false
  );
}
