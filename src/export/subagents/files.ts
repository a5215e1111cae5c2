import { type AgentFile, findAgentFiles, findLegacyAgentFile } from '../../transcript/agents/agent-files.js';

/** The files of a session's subagents, listed once. */
export class AgentFiles {
  readonly #transcriptPath: string;
  #byId: Map<string, AgentFile | undefined> | undefined;
  #byCall: ReadonlyMap<string, readonly string[]> | undefined;

  constructor(transcriptPath: string) {
    this.#transcriptPath = transcriptPath;
  }

  list(): AgentFile[] {
    return [...this.#files().values()].filter((file) => file !== undefined);
  }

  /** Also looks where versions before 2.1 put an agent's file. */
  find(agentId: string): AgentFile | undefined {
    const files = this.#files();
    if (!files.has(agentId)) files.set(agentId, findLegacyAgentFile(this.#transcriptPath, agentId));
    return files.get(agentId);
  }

  /** The agents whose files name this call as the one that started them. */
  startedBy(callId: string): readonly string[] {
    this.#byCall ??= groupByCall(this.list());
    return this.#byCall.get(callId) ?? [];
  }

  #files(): Map<string, AgentFile | undefined> {
    this.#byId ??= new Map(findAgentFiles(this.#transcriptPath).map((file) => [file.agentId, file]));
    return this.#byId;
  }
}

function groupByCall(files: readonly AgentFile[]): Map<string, string[]> {
  const byCall = new Map<string, string[]>();
  for (const { agentId, meta } of files) {
    if (meta.toolUseId === undefined) continue;
    const known = byCall.get(meta.toolUseId);
    if (known) known.push(agentId);
    else byCall.set(meta.toolUseId, [agentId]);
  }
  return byCall;
}
