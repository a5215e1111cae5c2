import { dirname, join } from 'node:path';
import { attempt } from '../../shared/attempt.js';
import { memoize } from '../../shared/memoize.js';
import {
  type AgentFile,
  findAgentFiles,
  isContinuation,
  namesStarter,
  readAgentStart,
} from '../../transcript/agents/agent-files.js';
import { readFirstTime } from '../../transcript/file/lines.js';
import { type AgentThread, listTimes, type Turn } from '../../transcript/turns/turn.js';
import { isMutedAt } from '../run-lookup.js';
import type { SessionRun } from '../session-run.js';
import { readAgentThread } from './agent-lines.js';
import type { AgentFiles } from './files.js';
import type { Placement } from './placement.js';

/** Decides about agents that are below no known call: each has a trace of its own, waits for its call, or stays with its turn. */
export class Strays {
  readonly #run: SessionRun;
  readonly #files: AgentFiles;
  readonly #placement: Placement;
  /** Whether an agent that has been sent is kept back since: it went on while that was to stay. */
  readonly #isKeptFile = memoize(
    (file: AgentFile) => {
      const thread = readAgentThread(file, this.#run);
      return thread !== undefined && isKeptBack(thread, this.#run, this.#files);
    },
    ({ agentId }) => agentId,
  );
  /** Calls, agents and workflows that turns have named, sent or not. */
  readonly #named = new Set<string>();
  /** By the ids of prompts, whether their turns stay, or wait. An agent's file begins with the id of its turn's prompt. */
  readonly #prompts = new Map<string, boolean>();

  constructor(run: SessionRun, files: AgentFiles, placement: Placement) {
    this.#run = run;
    this.#files = files;
    this.#placement = placement;
  }

  /** Takes note of what a turn names. The result of a call can still name a workflow whose steps have ended. */
  note(turn: Turn): void {
    const { request, lookup } = this.#run;
    const calls = turn.responses.flatMap((response) => response.calls);
    for (const { id, result } of calls) {
      const { agentId, runId } = result?.details ?? {};
      for (const name of [id, agentId, runId]) if (name !== undefined) this.#named.add(name);
    }
    const mayGoOn = !request.takesAll && !lookup.isOver;
    this.#notePrompts(turn, mayGoOn && calls.some(({ result }) => result === undefined));
  }

  /** Takes note that a turn is not sent, or not yet. Its agents are not sent either, whether its calls name them or not. */
  keep(turn: Turn): void {
    this.#notePrompts(turn, true);
  }

  /** Returns `unnamed` for an agent that no call started, and `stray` if its call is in no file; undefined if it waits, or stays. */
  judge(file: AgentFile): 'unnamed' | 'stray' | undefined {
    if (this.#isOfKeptTurn(file)) return undefined;
    const isOfCall = namesStarter(file) || isContinuation(file) || this.#files.findOtherSessions(file).length > 0;
    if (!isOfCall) return 'unnamed';
    return this.#isStray(file) ? 'stray' : undefined;
  }

  #notePrompts({ prompts }: Turn, isKept: boolean): void {
    for (const { promptId } of prompts)
      if (promptId !== undefined) this.#prompts.set(promptId, isKept || this.#prompts.get(promptId) === true);
  }

  /** A turn before the start that is not read again may have been muted. */
  #isOfKeptTurn(file: AgentFile): boolean {
    const { start, lookup } = this.#run;
    const { promptId } = readAgentStart(file) ?? {};
    if (promptId === undefined) return this.#named.has(file.agentId);
    const isKept = this.#prompts.get(promptId) ?? (start.offset > 0 && lookup.wasMuted);
    return isKept || this.#named.has(file.agentId);
  }

  /** An agent whose call is in a file is placed below it once that is known, or is kept back with it. */
  #isStray(file: AgentFile): boolean {
    const { start, request, originals } = this.#run;
    const { meta, workflowRunId } = file;
    if (start.offset > 0 || this.#files.listOwn().some((each) => this.#isWaiting(each))) return false;
    const parent = meta.parentAgentId === undefined ? undefined : this.#files.find(meta.parentAgentId);
    // It is sent first, or is kept back.
    if (parent && !this.#placement.entries.has(parent.agentId) && readAgentThread(parent, this.#run)) return false;
    const names = [meta.toolUseId, workflowRunId].filter((name) => name !== undefined);
    if (names.some((name) => this.#named.has(name))) return false;
    const isElsewhere = (session: string) => {
      if (originals.holds(session, undefined) === undefined) return false;
      const isNamed = names.some((name) => originals.holds(session, name));
      return isNamed || beganIn(join(dirname(request.path), `${session}.jsonl`), file);
    };
    return !this.#files.findOtherSessions(file).some(isElsewhere);
  }

  /**
   * Whether an agent is placed below a call and has not been sent, or not to its end, or is kept back. Nobody knows which agents it
   * has started.
   */
  #isWaiting(file: AgentFile): boolean {
    const entry = this.#placement.find(file);
    if (!entry || entry.lost) return false;
    const { bytes, parts, lastLine } = entry;
    if ((parts?.[this.#files.session] ?? bytes) !== file.bytes) return true;
    return lastLine === 0 ? readAgentThread(file, this.#run) !== undefined : this.#isKeptFile(file);
  }
}

/** Whether an agent wrote anything while its session, or one in which it went on, was muted or not traced. */
export function isKeptBack(thread: AgentThread, { lookup }: Pick<SessionRun, 'lookup'>, files: AgentFiles): boolean {
  return lookup.isAgentKept(thread) || isMutedAt(files.mutesElsewhere, thread.turns.flatMap(listTimes));
}

/** Whether the folder of another session has a part of an agent that is older than this one. */
function beganIn(transcriptPath: string, { agentId, parts: [own] }: AgentFile): boolean {
  const timeOf = (path: string) => attempt(() => readFirstTime(path)) ?? 0;
  const there = findAgentFiles(transcriptPath).find((file) => file.agentId === agentId);
  return there !== undefined && timeOf(there.parts[0].path) < timeOf(own.path);
}
