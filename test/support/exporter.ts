import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { recordEnd } from '../../src/commands/hook/record-run.js';
import { describingVariables } from '../../src/config/settings.js';
import type { ExportContext, ExportReport, ExportRequest } from '../../src/export/export-request.js';
import { exportSession } from '../../src/export/session.js';
import type { Destination } from '../../src/langfuse/destination.js';
import { openDestination } from '../../src/langfuse/open-destination.js';
import type { Caller } from '../../src/observations/model.js';
import { logPath, openLog } from '../../src/shared/log.js';
import { BEGINNING } from '../../src/shared/place.js';
import type { Fact } from '../../src/state/facts.js';
import { openRun, type RunIdentity } from '../../src/state/runs.js';
import { StateStore } from '../../src/state/store.js';
import { LangfuseServer, langfuseAt } from './langfuse-server.js';

const DESTINATION = 'x';

interface ExporterOptions extends Pick<ExportContext, 'observer' | 'partBytes' | 'stop'>, Pick<ExportRequest, 'force'> {
  readonly ms?: number;
}

/** Exports sessions in this process, to a server of its own. */
export class Exporter {
  readonly folder: string;
  readonly server: LangfuseServer;
  readonly destination: Destination;

  private constructor(folder: string, server: LangfuseServer, destination: Destination) {
    this.folder = folder;
    this.server = server;
    this.destination = destination;
  }

  static async open(): Promise<Exporter> {
    const folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-export-'));
    const server = await LangfuseServer.start();
    return new Exporter(folder, server, openDestination(langfuseAt(server.url), join(folder, 'state')));
  }

  /** Exports a session, which was traced from its first line on, as its SessionEnd would, within some time. */
  async export(
    path: string,
    env: NodeJS.ProcessEnv = {},
    caller: Caller = {},
    { ms = 20_000, force = false, ...more }: ExporterOptions = {},
  ): Promise<ExportReport> {
    const log = openLog(join(this.folder, 'state'), { debug: false });
    const identity = { destination: DESTINATION, given: describingVariables(env), ...caller };
    const state = await this.#start(path, identity);
    await recordEnd({ session_id: basename(path, '.jsonl'), transcript_path: path }, state);
    const report = await exportSession(
      {
        sessionId: basename(path, '.jsonl'),
        path,
        occasion: 'event',
        includeLegacyFiles: true,
        force,
        run: identity,
      },
      {
        state,
        destination: this.destination,
        destinationId: DESTINATION,
        env,
        deadline: Date.now() + ms,
        log,
        ...more,
      },
    );
    await log.flush();
    return report;
  }

  /** Exports what is final of a session, which was traced from its first line on, and whose turn goes on. */
  async exportLive(
    path: string,
    context: Pick<ExportContext, 'partBytes' | 'agentsRead'> & Partial<Pick<ExportContext, 'destination'>> = {},
  ): Promise<ExportReport> {
    const log = openLog(join(this.folder, 'state'), { debug: false });
    const state = await this.#start(path, { destination: DESTINATION, given: describingVariables({}) });
    const report = await exportSession(
      {
        sessionId: basename(path, '.jsonl'),
        path,
        occasion: 'live',
      },
      {
        state,
        destination: this.destination,
        destinationId: DESTINATION,
        env: {},
        deadline: Date.now() + 20_000,
        log,
        ...context,
      },
    );
    await log.flush();
    return report;
  }

  /** Records that a session's run, which began before its first line, goes on. Returns the state. */
  async #start(path: string, identity: RunIdentity): Promise<StateStore> {
    const state = new StateStore(join(this.folder, 'state'));
    const sessionId = basename(path, '.jsonl');
    const { runs = [] } = state.readSession(sessionId) ?? {};
    if (openRun(runs)) return state;
    const start: Fact = {
      kind: 'start',
      at: Date.now(),
      after: BEGINNING,
      source: 'startup',
      run: identity,
      alive: [],
    };
    await state.update(sessionId, { path, facts: [start] });
    return state;
  }

  /** What was logged, one line after the other. */
  get log(): string {
    const path = logPath(join(this.folder, 'state'));
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  async close(): Promise<void> {
    await this.destination.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
