import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Exporter } from './exporter.js';
import { AS_RECORDED, writeNthSession } from './generated.js';
import { recordings, transcriptsOf } from './recording.js';
import { removeFolder } from './remove-folder.js';

/** What is assumed of a developer, since no recording can tell it. */
export const ASSUMED = { turnsPerDay: 40, hoursPerDay: 8, peak: 2, callsPerLongTurn: 20, workdaysPerMonth: 21 };

/** What a turn becomes, on average. */
export interface TurnAverages {
  readonly observations: number;
  /** Before compression. */
  readonly bytes: number;
}

interface Exported {
  readonly sessions: number;
  readonly turns: number;
  readonly observations: number;
  readonly bytes: number;
  readonly compressedBytes: number;
}

export async function measureRecordings(): Promise<Exported> {
  const all: Exported[] = [];
  for (const recording of recordings()) all.push(await exportAll(transcriptsOf(recording)));
  return all.reduce(add);
}

/** Measures a session of long turns, in the proportions of long recordings. */
export async function measureLongTurns(): Promise<Exported> {
  const projects = mkdtempSync(join(tmpdir(), 'cc-langfuse-sizing-'));
  try {
    const { callsPerLongTurn: callsPerTurn } = ASSUMED;
    return await exportAll([writeNthSession(projects, 1, { turns: 10, callsPerTurn, ...AS_RECORDED })]);
  } finally {
    await removeFolder(projects);
  }
}

export function averageTurn({ turns, observations, bytes }: Exported): TurnAverages {
  return { observations: observations / turns, bytes: bytes / turns };
}

/** How many turns so many developers complete in a second of the busiest hour. */
export function peakTurnsPerSecond(developers: number): number {
  const { turnsPerDay, hoursPerDay, peak } = ASSUMED;
  return ((developers * turnsPerDay) / hoursPerDay / 3_600) * peak;
}

async function exportAll(paths: readonly string[]): Promise<Exported> {
  const exporter = await Exporter.open();
  try {
    let all = { sessions: 0, turns: 0, observations: 0, bytes: 0, compressedBytes: 0 };
    for (const path of paths) {
      const { sent } = await exporter.export(path);
      all = add(all, { ...sent, sessions: 1, compressedBytes: 0 });
    }
    const compressedBytes = exporter.server.requests.reduce(
      (sum, { bytes, spans }) => sum + (spans > 0 ? bytes : 0),
      0,
    );
    return { ...all, compressedBytes };
  } finally {
    await exporter.close();
  }
}

function add(one: Exported, other: Exported): Exported {
  return {
    sessions: one.sessions + other.sessions,
    turns: one.turns + other.turns,
    observations: one.observations + other.observations,
    bytes: one.bytes + other.bytes,
    compressedBytes: one.compressedBytes + other.compressedBytes,
  };
}
