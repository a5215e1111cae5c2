import type { CollectorConfig } from '../config/settings.js';
import { encodeGenAiSpan } from './otlp/gen-ai.js';
import type { OtlpEndpoint } from './otlp/otlp-transport.js';
import { postSpans } from './otlp/otlp-transport.js';
import { Sender } from './sender.js';
import { hashId, type Target } from './target.js';
import type { Transport } from './transport.js';
import { quote, type Refusal } from './words.js';

/** An OpenTelemetry Collector: it accepts spans, but neither media nor scores. */
export function collectorTarget(config: CollectorConfig): Target {
  const { url, headers, semconv } = config;
  const endpoint: OtlpEndpoint = {
    url,
    readHeaders: async () => headers,
    name: 'a Collector',
    describeRefusal: ({ status, words }) => `the Collector refuses CC_LANGFUSE_OTLP_HEADERS (${status})${quote(words)}`,
    missing: "there is no OTLP endpoint at CC_LANGFUSE_OTLP_URL (404); a Collector's URL ends with /v1/traces",
  };
  const describeRefusal = ({ status, words }: Refusal) =>
    `${url.host} refused CC_LANGFUSE_OTLP_HEADERS (${status})${quote(words)}`;
  return {
    kind: config.kind,
    // Without a user name and password, which may change.
    id: hashId(`${url.origin}${url.pathname}${url.search}`),
    name: 'the Collector',
    url,
    settings: { url: 'CC_LANGFUSE_OTLP_URL', credentials: 'CC_LANGFUSE_OTLP_HEADERS' },
    account: { url: url.href, headers },
    open: (http) => {
      const post: Transport['post'] = (outgoing, limits) => postSpans(outgoing, endpoint, http, limits);
      const encodeSpan = semconv === 'gen_ai' ? encodeGenAiSpan : undefined;
      return new Sender({ post, encodeSpan }, http, { host: url.host, describeRefusal });
    },
    probe: (http, limits) => postSpans([], endpoint, http, limits),
  };
}
