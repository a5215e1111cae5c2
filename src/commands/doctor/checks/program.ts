import { realpathSync, statSync } from 'node:fs';
import { claudeFolder } from '../../../config/claude-folder.js';
import { attempt } from '../../../shared/attempt.js';
import { isOlder, version } from '../../../shared/version.js';
import { withReader } from '../../../transcript/file/lines.js';
import type { SourceLine, TranscriptReader } from '../../../transcript/file/reader.js';
import { UnknownCounts } from '../../../transcript/file/unknown.js';
import { findTranscripts, projectsFolder } from '../../../transcript/sessions/find-transcripts.js';
import { readOverview } from '../../../transcript/sessions/overview.js';
import { LAST_UNDER_REPORTING } from '../../../transcript/turns/turn.js';
import { about, type Finding } from '../finding.js';
import type { SettingsInForce } from './settings.js';

/** The same as in package.json's `engines`. */
const OLDEST_NODE = '20.19.0';
/** The newest session may have no prompt yet, and then it names no version. */
const SESSIONS_READ = 5;

/** Doctor has to be quick: what Claude Code writes today is in the ends of the newest transcripts. */
const TRANSCRIPTS_READ = 20;
const BYTES_READ = 500_000;

export const PROGRAM_CHECKS = [checkNode, checkProgram, checkClaudeCode, checkTranscripts];

function checkNode(): Finding {
  const path = realpathSync(process.execPath);
  const node = about('node', { version: process.version, path });
  const message = `${process.version} (${path})`;
  if (!isOlder(process.version.slice(1), OLDEST_NODE)) return node.ok(message);
  return node.broken(`${message} is older than 20.19`, 'install Node 20.19 or newer: https://nodejs.org');
}

function checkProgram(): Finding {
  const path = realpathSync(process.argv[1] ?? '');
  return about('cc-langfuse', { version, path }).ok(`${version} (${path})`);
}

function checkClaudeCode({ shell }: SettingsInForce): Finding {
  const session = findLastSession(claudeFolder(shell));
  if (!session?.version) return about('claude-code').none('unknown, because there is no session on disk');
  const claudeCode = about('claude-code', { version: session.version, sessionId: session.sessionId });
  const message = `${session.version}, according to the last session (${session.sessionId})`;
  if (isOlder(LAST_UNDER_REPORTING, session.version)) return claudeCode.ok(message);
  return claudeCode.warning(
    `${message}: versions up to ${LAST_UNDER_REPORTING} record too few output tokens of some answers`,
    'claude update',
  );
}

/** What counts is the version that wrote the transcripts: any may be on the PATH, and desktop apps have their own. */
function findLastSession(folder: string) {
  return listNewestTranscripts(folder)
    .slice(0, SESSIONS_READ)
    .map((path) => attempt(() => readOverview(path)))
    .find((session) => session?.version !== undefined);
}

/** Names the types and fields that this version does not know. It shows no content, so it can be pasted into a bug report. */
function checkTranscripts({ shell }: SettingsInForce): Finding[] {
  const paths = listNewestTranscripts(claudeFolder(shell)).slice(0, TRANSCRIPTS_READ);
  const counts = new UnknownCounts();
  for (const path of paths) attempt(() => withReader(path, (reader) => counts.addAll(readEnd(reader))));
  const unknown = counts.format();
  return unknown === '' ? [] : [about('transcripts', { unknown }).none(`unknown to this version: ${unknown}`)];
}

function readEnd(reader: TranscriptReader): Iterable<SourceLine> {
  reader.moveToLineFrom(Math.max(0, reader.status.bytes - BYTES_READ));
  return reader.lines();
}

function listNewestTranscripts(folder: string): string[] {
  const paths = attempt(() => [...findTranscripts(projectsFolder(folder), () => {})]) ?? [];
  return paths
    .map((path) => ({ path, changedAt: attempt(() => statSync(path).mtimeMs) ?? 0 }))
    .toSorted((a, b) => b.changedAt - a.changedAt)
    .map(({ path }) => path);
}
