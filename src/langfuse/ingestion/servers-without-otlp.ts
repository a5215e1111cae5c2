import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord, parseJson } from '../../shared/json.js';

const FILE_NAME = 'cc-langfuse_no_otlp';
/** After a day a server is asked for an OTLP endpoint again: it may have been upgraded. */
const REMEMBERED_MS = 24 * 60 * 60_000;

/** The fingerprints of servers that were found without an OTLP endpoint, and when. */
export function readServersWithoutOtlp(stateFolder: string): Map<string, number> {
  const now = Date.now();
  const isRecent = (entry: [string, unknown]): entry is [string, number] =>
    typeof entry[1] === 'number' && entry[1] <= now && now - entry[1] < REMEMBERED_MS;
  try {
    const content = parseJson(readFileSync(join(stateFolder, FILE_NAME), 'utf8'));
    return new Map(Object.entries(isRecord(content) ? content : {}).filter(isRecent));
  } catch {
    return new Map();
  }
}

/** Remembering only saves requests: if the file cannot be written, the next run finds out for itself. */
export function rememberServer(stateFolder: string, fingerprint: string, { hasOtlp }: { hasOtlp: boolean }): void {
  const servers = readServersWithoutOtlp(stateFolder);
  if (hasOtlp) servers.delete(fingerprint);
  else servers.set(fingerprint, Date.now());
  try {
    mkdirSync(stateFolder, { recursive: true, mode: 0o700 });
    const text = `${JSON.stringify(Object.fromEntries(servers))}\n`;
    writeFileSync(join(stateFolder, FILE_NAME), text, { mode: 0o600 });
  } catch {
    // see above
  }
}
