import { lstatSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { attempt } from '../shared/attempt.js';
import { identifyFile } from '../shared/file-identity.js';
import type { Entry } from '../state/entry.js';
import { listRuns } from '../state/runs.js';
import { type AgentFolders, findAgentFiles } from '../transcript/agents/agent-files.js';
import { isReadByOlder } from './overlooked.js';

/**
 * Whether all of a session has been sent to a destination, and none of its files has changed since: then it need not be read. In
 * doubt it is, for instance if some of its turns are for another destination, or are muted.
 */
export function isUnchanged(entry: Entry, path: string, destinationId: string, folders: AgentFolders): boolean {
  const { file, pending, scores = {}, mutes = [], kept } = entry;
  if (entry.path !== path || file === undefined || isReadByOlder(entry)) return false;
  if (pending || kept || mutes.length > 0 || Object.values(scores).some((turn) => turn !== undefined)) return false;
  if (listRuns(entry).some((run) => run.destination !== destinationId || run.given === undefined)) return false;
  const status = attempt(() => lstatSync(path, { bigint: true }));
  return status?.isFile() === true && identifyFile(status) === file && areAgentsUnchanged(entry, path, folders);
}

function areAgentsUnchanged({ agents = {} }: Entry, path: string, folders: AgentFolders): boolean {
  const project = dirname(path);
  // Which session such a file belongs to, only its lines say.
  if (folders.hasLegacyFiles(project)) return false;
  const files = findAgentFiles(path);
  const known = Object.keys(agents).filter((id) => !id.startsWith('workflow '));
  const session = basename(path, '.jsonl');
  return (
    files.every(({ agentId, bytes }) => agents[agentId]?.bytes === bytes && agents[agentId].parts === undefined) &&
    known.every((id) => files.some(({ agentId }) => agentId === id)) &&
    // An agent can go on in the folder of another session.
    known.every((id) => folders.findSessions(project, id).every((each) => each === session))
  );
}
