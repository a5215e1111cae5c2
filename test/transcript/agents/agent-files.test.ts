import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findLegacyAgentFiles } from '../../../src/transcript/agents/agent-files.js';
import { assistant, jsonLines, SESSION, user } from '../../support/lines.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-agents-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a transcript, and next to it an agent of its session and one of another. */
function write(version: string | undefined): string {
  const transcript = join(folder, `${SESSION}.jsonl`);
  const lines = (sessionId: string) => [user('q', { sessionId, version }), assistant('m', 'a', { sessionId, version })];
  writeFileSync(transcript, jsonLines(lines(SESSION)));
  writeFileSync(join(folder, 'agent-own.jsonl'), jsonLines(lines(SESSION)));
  writeFileSync(join(folder, 'agent-other.jsonl'), jsonLines(lines('another')));
  return transcript;
}

describe('agent files next to a transcript', () => {
  test.each(['1.0.128', '2.0.76', 'dev', undefined])('are found for a session of version %s', (version) => {
    expect(findLegacyAgentFiles(write(version), SESSION).map(({ agentId }) => agentId)).toEqual(['own']);
  });

  test.each(['2.1.0', '2.1.326', '2.10.1', '3.0.0'])('are not looked for if its version is %s', (version) => {
    expect(findLegacyAgentFiles(write(version), SESSION)).toEqual([]);
  });
});
