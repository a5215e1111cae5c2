import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Caller } from '../../src/caller.js';
import type { Langfuse } from '../../src/config.js';
import { otlpEndpoint } from '../../src/langfuse/endpoint.js';
import { sendScores } from '../../src/langfuse/scores.js';
import { Sender } from '../../src/langfuse/send.js';
import { openLog } from '../../src/log.js';
import { type ExportReport, exportSession } from '../../src/session-export.js';
import { StateStore } from '../../src/state/store.js';
import { LangfuseServer, PUBLIC_KEY, SECRET_KEY } from './langfuse-server.js';
import { OPTIONS } from './traces.js';

/** The way of a session without a process around it: from a transcript to a server of its own. */
export class Exporter {
  readonly folder = mkdtempSync(join(tmpdir(), 'cc-langfuse-export-'));
  readonly server: LangfuseServer;
  readonly #langfuse: Langfuse;
  readonly #sender: Sender;

  private constructor(server: LangfuseServer) {
    this.server = server;
    this.#langfuse = { baseUrl: new URL(server.url), publicKey: PUBLIC_KEY, secretKey: SECRET_KEY };
    this.#sender = new Sender(otlpEndpoint(this.#langfuse));
  }

  static async open(): Promise<Exporter> {
    return new Exporter(await LangfuseServer.start());
  }

  /** Exports a session as its SessionEnd would. */
  export(path: string, options: Partial<typeof OPTIONS> = {}, caller: Caller = {}): Promise<ExportReport> {
    return exportSession(
      {
        sessionId: basename(path, '.jsonl'),
        path,
        occasion: 'event',
        closing: { kind: 'everything' },
        agents: { running: new Set(), areOver: true, mayBeBeside: true },
        caller,
      },
      {
        store: new StateStore(join(this.folder, 'state'), () => {}),
        send: (spans) => this.#sender.send(spans, Date.now() + 10_000),
        sendScores: (turns) => sendScores(this.#langfuse, turns, { deadline: Date.now() + 10_000 }),
        options: { ...OPTIONS, ...options },
        given: {},
        destination: 'x',
        log: openLog(join(this.folder, 'state'), { debug: false }),
        waitUntil: Date.now() + 10_000,
        readUntil: Date.now() + 10_000,
      },
    );
  }

  async close(): Promise<void> {
    await this.#sender.close();
    await this.server.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
