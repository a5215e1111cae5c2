import type { LangfuseConfig } from '../config/settings.js';
import type { TurnScores } from '../observations/build/scores.js';
import type { Observation } from '../observations/model.js';
import type { Destination, Limits, MediaReport, ScoreReport } from './destination.js';
import { adviseOnRefusal, describeRefusal, langfuseId, langfuseOtlp } from './endpoint.js';
import { RetryingHttpClient } from './http/retry.js';
import { LangfuseTransport } from './langfuse-transport.js';
import type { MediaUploads } from './media/media-uploads.lazy.js';
import { postSpans } from './otlp/otlp-transport.js';
import { Sender } from './sender.js';
import type { Target } from './target.js';

export function langfuseTarget(langfuse: LangfuseConfig): Target {
  const { kind, baseUrl: url, publicKey, secretKey, headers } = langfuse;
  return {
    kind,
    id: langfuseId(langfuse),
    name: 'Langfuse',
    url,
    settings: { url: 'LANGFUSE_BASE_URL', credentials: 'LANGFUSE_SECRET_KEY' },
    // Whether two commands print the same key is not known.
    account: {
      url: langfuseOtlp(langfuse).url.href,
      publicKey,
      headers,
      secretKey: typeof secretKey === 'string' ? secretKey : '',
    },
    langfuse,
    open: (http, stateFolder) => new LangfuseDestination(langfuse, http, stateFolder),
    probe: (http, limits) => postSpans([], langfuseOtlp(langfuse), http, limits),
  };
}

/** A Langfuse project. Few exports have images or scores, so the code for them is loaded when it is first needed. */
class LangfuseDestination extends Sender implements Destination {
  readonly #config: LangfuseConfig;
  #media: Promise<MediaUploads> | undefined;

  constructor(config: LangfuseConfig, http: RetryingHttpClient, stateFolder: string) {
    super(new LangfuseTransport(config, http, stateFolder), http, {
      host: config.baseUrl.host,
      describeRefusal: (refusal) => `${describeRefusal(config, refusal)}; ${adviseOnRefusal(refusal.status)}`,
    });
    this.#config = config;
  }

  async uploadMedia(observation: Observation, limits: Limits): Promise<MediaReport> {
    this.#media ??= import('./media/media-uploads.lazy.js').then(
      // A storage that asks to wait does not pause the requests with observations.
      ({ MediaUploads }) => new MediaUploads(this.#config, new RetryingHttpClient(this.http.client)),
    );
    return (await this.#media).upload(observation, limits);
  }

  async sendScores(turns: readonly TurnScores[], limits: Limits): Promise<ScoreReport> {
    const { sendScores } = await import('./scores.lazy.js');
    return sendScores(turns, this.#config, this.http.client, limits);
  }
}
