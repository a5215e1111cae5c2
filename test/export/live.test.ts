import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Exporter } from '../support/exporter.js';
import type { LangfuseServer, StoredObservation } from '../support/langfuse-server.js';
import { grow, type Recording, recordings } from '../support/recording.js';
import { describeTraces } from '../support/traces.js';

const isTranscript = (path: string) => /^[0-9a-f-]{36}\.jsonl$/.test(basename(path));

/** Plays a recording, with a live export after each line, and ends all of its sessions. */
async function follow(recording: Recording, exporter: Exporter, partBytes?: number): Promise<void> {
  const transcripts = new Set<string>();
  const agentsRead = new Map<string, number>();
  for (const { path } of grow(recording, exporter.folder)) {
    if (isTranscript(path)) transcripts.add(path);
    for (const each of transcripts)
      expect(
        await exporter.exportLive(each, { agentsRead, ...(partBytes !== undefined && { partBytes }) }),
      ).toMatchObject({
        failure: undefined,
      });
  }
  for (const path of transcripts) expect(await exporter.export(path)).toMatchObject({ failure: undefined });
}

/** What a turn uses later is missing from the tags of its early observations. */
function withoutTagsOf({ observations }: LangfuseServer): StoredObservation[] {
  return observations.map(({ trace, ...rest }) => ({ ...rest, trace: { ...trace, tags: [] } }));
}

function withoutTags(traces: string): object[] {
  return (JSON.parse(traces) as { tags: string[] }[]).map(({ tags: _, ...rest }) => rest);
}

function sentAgain(server: LangfuseServer): string[] {
  return server.observations.filter((each) => server.timesSent(each) > 1).map(({ type, name }) => `${type} ${name}`);
}

describe('a session that is followed becomes the observations in its expected.json, and none is sent twice', () => {
  test.each(recordings())('$name', async (recording) => {
    const exporter = await Exporter.open();
    try {
      await follow(recording, exporter);
      const { server } = exporter;
      expect(withoutTags(describeTraces(withoutTagsOf(server)))).toEqual(
        withoutTags(readFileSync(join(recording.folder, 'expected.json'), 'utf8')),
      );
      expect(sentAgain(server)).toEqual([]);
      expect(server.lost).toBe(0);
    } finally {
      await exporter.close();
    }
  });
});
