import type { Settings } from '../config/settings.js';
import { buildTurn } from '../observations/build/turn.js';
import type { Observation } from '../observations/model.js';
import type { Session } from '../state/entry.js';
import { findRun } from '../state/runs.js';
import { Places } from '../transcript/file/place.js';
import { readAllTurns } from '../transcript/turns/read-all-turns.js';
import type { Turn } from '../transcript/turns/turn.js';
import type { ExportContext } from './export-request.js';
import { RunLookup } from './run-lookup.js';
import { RunSettings } from './session-run.js';

/** A turn as it is in Langfuse, or will be. */
export interface FoundTurn {
  readonly turn: Turn;
  readonly destination: string;
  readonly root: Observation;
  /** The settings that it is sent under. */
  readonly settings: Settings;
}

/** Returns the last wanted turn of a session. Throws with a line for the user if that turn is not to be sent. */
export async function findTurn(
  { sessionId, path }: { readonly sessionId: string; readonly path: string },
  isWanted: (turn: Turn) => boolean,
  known: Session,
  context: Pick<ExportContext, 'env' | 'restrictions'>,
): Promise<FoundTurn> {
  let turn: Turn | undefined;
  for (const each of readAllTurns(path, 'main', sessionId)) if (isWanted(each)) turn = each;
  if (!turn) throw new Error('the session has no such turn');
  const prompts = turn.prompts.map(({ offset }) => offset);
  const { destination } = findRun(known, turn.prompts[0].offset) ?? {};
  const lookup = new RunLookup(known, destination ?? '', new Places(path));
  const about = `turn ${turn.number} is not in Langfuse`;
  if (lookup.isMuted(turn)) throw new Error(`${about}: the session was muted`);
  const runs = lookup.findRuns(prompts);
  if (!runs || destination === undefined)
    throw new Error(`${about}: it ran without tracing, or without keys, and backfill has not sent it`);
  const runSettings = new RunSettings(context, {}, {});
  const settings = await runSettings.find(runs);
  if (!settings) throw new Error(`${about}: its folder is excluded, or tracing is off there`);
  const options = { ...runSettings.buildOptions(runs, settings, turn.context.cwd), sessionId };
  return { turn, destination, root: buildTurn(turn, options).root, settings };
}
