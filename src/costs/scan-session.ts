import { basename } from 'node:path';
import { nameModel } from '../observations/build/model-name.js';
import { countUsage, isCount } from '../observations/build/usage.js';
import type { AgentFile } from '../transcript/agents/agent-files.js';
import { type AssistantLine, parseLine, parseProgress, type UserLine } from '../transcript/file/line.js';
import { listAllLines, withReader } from '../transcript/file/lines.js';
import type { SourceLine, TranscriptReader } from '../transcript/file/reader.js';
import type { TokenCounts } from '../transcript/file/schema.js';
import { listAdvisorUses } from '../transcript/file/token-kinds.js';
import { type AccountPoint, parseAccountPoint } from '../transcript/sessions/cost-account.js';
import { markLongPrompt } from './list-prices.js';
import { ADVISOR, mapUsed, type PlacedPoint, type SessionScan, type Use } from './session-usage.js';

/** What a response, or an advisor that it asked, used. */
interface NamedUse {
  readonly id: string;
  readonly model?: string | undefined;
  readonly usage?: TokenCounts | undefined;
}

const ASSISTANT = Buffer.from('"assistant"');
const USER = Buffer.from('"type":"user"');

/** Reads what a session used from a byte on, and its subagents. Throws if the transcript cannot be read. */
export function scanSession(path: string, agents: readonly AgentFile[], from = 0): SessionScan {
  const scan = new Scan(path);
  scan.readMain(from);
  for (const { path: agentPath } of agents.flatMap(({ parts }) => parts)) scan.readAgent(agentPath);
  return scan.finish();
}

class Scan {
  readonly #sessionId: string;
  readonly #path: string;
  readonly #responses = new Map<string, Use>();
  readonly #unreadable: { readonly path: string; readonly error: unknown }[] = [];
  #points: PlacedPoint[] = [];
  #folder = '';
  #branch = '';
  #startedAt: number | undefined;
  #endedAt = 0;
  #ownFrom: number | undefined;
  #parent: string | undefined;
  #firstPrompt: string | undefined;
  /** For each response of the main thread the first line of the account after it. */
  readonly #pointOf = new Map<string, number>();
  /** The responses after the account's last line. */
  readonly #afterAccount = new Set<string>();

  constructor(path: string) {
    this.#sessionId = basename(path, '.jsonl');
    this.#path = path;
  }

  readMain(from: number): void {
    withReader(this.#path, (reader) => {
      reader.moveToLineFrom(from);
      for (const source of listAllLines(reader)) {
        const point = parseAccountPoint(source.bytes);
        if (point) this.#addPoint(point);
        // Most of a file is neither, and is not parsed.
        else if (source.bytes.includes(ASSISTANT) || (!this.#firstPrompt && source.bytes.includes(USER))) {
          const line = parseLine(source);
          if (line?.kind === 'user') this.#addUserLine(line);
          if (line?.kind === 'assistant') this.#addMainLine(line);
          if (line?.kind === 'other' && line.type === 'progress') this.#addProgress(source);
        }
      }
    });
  }

  /** What cannot be read of an agent does not cost the session. */
  readAgent(path: string): void {
    try {
      withReader(path, (reader) => this.#readAgentLines(reader));
    } catch (error) {
      this.#unreadable.push({ path, error });
    }
  }

  #readAgentLines(reader: TranscriptReader): void {
    for (const source of listAllLines(reader)) {
      const line = source.bytes.includes(ASSISTANT) ? parseLine(source) : undefined;
      if (line?.kind === 'assistant') this.#addResponse(line, true);
    }
  }

  finish(): SessionScan {
    const [firstAfter = ''] = this.#afterAccount;
    const end = this.#responses.get(firstAfter)?.at ?? Number.POSITIVE_INFINITY;
    const responses = [...this.#responses].map(([id, use]) => {
      const point = use.isAgent ? this.#findPoint(use.at, end) : this.#pointOf.get(id);
      return [id, markLongPrompt({ ...use, point })] as const;
    });
    const startedAt = this.#startedAt ?? this.#points[0]?.point.startTime ?? 0;
    return {
      sessionId: this.#sessionId,
      path: this.#path,
      folder: this.#folder,
      startedAt,
      endedAt: Math.max(this.#endedAt, startedAt),
      ownFrom: this.#ownFrom ?? startedAt,
      parent: this.#parent,
      firstPrompt: this.#firstPrompt,
      points: this.#points,
      responses: new Map(responses),
      unreadable: this.#unreadable,
    };
  }

  #addPoint(point: AccountPoint): void {
    for (const id of this.#afterAccount) this.#pointOf.set(id, this.#points.length);
    this.#points.push({ point, at: this.#endedAt || (point.startTime ?? 0), branch: this.#branch });
    this.#afterAccount.clear();
  }

  /** What an agent used is in the account by its time; `end` is when the first response came after the account's last line. */
  #findPoint(at: number, end: number): number | undefined {
    if (at >= end || this.#points.length === 0) return undefined;
    const point = this.#points.findIndex((each) => each.at >= at);
    return point < 0 ? this.#points.length - 1 : point;
  }

  /** Up to 2.0 only the prompts that a fork has copied name the other session. */
  #addUserLine(line: UserLine): void {
    const { sessionId, isMeta, uuid } = line.fields;
    if (sessionId !== undefined && sessionId !== this.#sessionId) this.#parent ??= sessionId;
    if (!isMeta) this.#firstPrompt ??= uuid;
  }

  #addMainLine(line: AssistantLine): void {
    const { cwd = '', gitBranch, requestSessionId, forkedFrom } = line.fields;
    const origin = forkedFrom?.sessionId ?? requestSessionId;
    const { at = this.#endedAt } = line;
    this.#folder ||= cwd;
    this.#branch = gitBranch ?? this.#branch;
    this.#startedAt ??= at;
    this.#endedAt = Math.max(this.#endedAt, at);
    // The copy of a copy names the first session.
    if (origin !== undefined && origin !== this.#sessionId) this.#parent = origin;
    else this.#ownFrom ??= at;
    for (const id of this.#addResponse(line, line.fields.isSidechain ?? false)) this.#afterAccount.add(id);
  }

  /** The agent's own file has more of it, but may be gone. */
  #addProgress(source: SourceLine): void {
    const { answer } = parseProgress(source) ?? {};
    if (answer) this.#addResponse(answer, true);
  }

  /** Adds what a line says that its response used, and the advisors that it asked. Returns the ids of what is new. */
  #addResponse(line: AssistantLine, isAgent: boolean): string[] {
    const { message = {}, uuid } = line.fields;
    const id = message.id ?? uuid ?? `${this.#sessionId} ${this.#responses.size}`;
    const advisors = listAdvisorUses(message.usage).map((use, index) => ({ ...use, id: `${id}${ADVISOR}${index}` }));
    return [{ ...message, id }, ...advisors].flatMap((use) => this.#addUse(use, line, isAgent) ?? []);
  }

  /** A response has one line for each block, and the one with the most tokens has all of them. Returns the id of a new one. */
  #addUse(
    { id, model, usage }: NamedUse,
    { fields, at = this.#endedAt }: AssistantLine,
    isAgent: boolean,
  ): string | undefined {
    const { gitBranch = this.#branch } = fields;
    const tokens = countUsage(usage);
    if (model === undefined || model === '<synthetic>' || !usage || !tokens || tokens.total === 0) return undefined;
    const { web_search_requests: searches } = usage.server_tool_use ?? {};
    const counted = { ...tokens, web_search_requests: isCount(searches) ? searches : 0 };
    const used = mapUsed((kind) => counted[kind] ?? 0);
    const known = this.#responses.get(id);
    if (known && known.used.output > used.output) return undefined;
    this.#responses.set(id, {
      at: known?.at ?? at,
      model: nameModel(model),
      branch: gitBranch,
      // In an agent's file it may be the copy of a response of the main thread.
      isAgent: known?.isAgent ?? isAgent,
      isFast: usage.speed === 'fast',
      isInUs: usage.inference_geo === 'us',
      used,
    });
    return known ? undefined : id;
  }
}
