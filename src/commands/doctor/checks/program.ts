import type { ProgramFacts } from '../facts/program.js';
import { broken, type Finding, none, ok, warning } from '../finding.js';

/** As in package.json's `engines`. */
const OLDEST_NODE = '20.19.0';
/** Up to it the last line of an answer has the tokens that its first event told: one. */
const UNDER_REPORTING = '2.1.90';

export function checkNode({ node: { version, path } }: ProgramFacts): Finding {
  const details = { version, path };
  if (isBefore(version.slice(1), OLDEST_NODE))
    return broken(
      'node',
      `${version} (${path}) is older than 20.19`,
      'install Node 20.19 or newer: https://nodejs.org',
      {
        ...details,
      },
    );
  return ok('node', `${version} (${path})`, details);
}

export function checkProgram({ program: { version, path } }: ProgramFacts): Finding {
  return ok('cc-langfuse', `${version} (${path})`, { version, path });
}

export function checkClaudeCode({ claudeCode }: ProgramFacts): Finding {
  if (!claudeCode?.version) return none('claude-code', 'no session on disk that would tell its version');
  const { version, sessionId } = claudeCode;
  const message = `${version}, by the last session (${sessionId})`;
  const isUnderReporting = !isBefore(UNDER_REPORTING, version);
  if (isUnderReporting)
    return warning(
      'claude-code',
      `${message}: up to ${UNDER_REPORTING} it notes too few output tokens`,
      'claude update',
      {
        version,
        sessionId,
      },
    );
  return ok('claude-code', message, { version, sessionId });
}

function isBefore(version: string, other: string): boolean {
  return version.localeCompare(other, 'en', { numeric: true }) < 0;
}
