import * as z from 'zod/mini';

// The keys and types of the components in examples/collector.yaml, as of version 0.159. Sources: `config.schema.yaml` of
// receiver/otlpreceiver, exporter/otlphttpexporter, exporter/exporterhelper/internal/queuebatch, config/confighttp,
// config/configretry and internal/memorylimiter in open-telemetry/opentelemetry-collector, and of
// extension/basicauthextension in open-telemetry/opentelemetry-collector-contrib. Extensions without a schema:
// extension/storage/filestorage/config.go and extension/healthcheckextension/README.md there. The conditions are those of
// each `Validate`. What is left out (gRPC, middlewares, cookies, CORS) the Collector knows and this schema refuses.

/** What Go's `time.ParseDuration` reads: a bare number has no unit and is refused. */
const Duration = z.string().check(z.regex(/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/));
const PositiveDuration = Duration.check(z.refine((value) => /[1-9]/.test(value)));
const Count = z.int().check(z.minimum(0));
const Positive = z.int().check(z.minimum(1));
const Texts = z.array(z.string());

/** Its keys are not checked. */
const Tls = z.record(z.string(), z.unknown());

const HttpServer = z.partial(
  z.strictObject({
    endpoint: z.string().check(z.regex(/:\d+$/)),
    tls: Tls,
    auth: z.strictObject({ authenticator: z.string(), request_params: z.optional(Texts) }),
    compression_algorithms: Texts,
    include_metadata: z.boolean(),
    keep_alives_enabled: z.boolean(),
    max_request_body_size: Positive,
    response_headers: z.record(z.string(), z.string()),
    idle_timeout: Duration,
    read_timeout: Duration,
    read_header_timeout: Duration,
    write_timeout: Duration,
  }),
);

const FileStorage = z.partial(
  z.strictObject({
    directory: z.string().check(z.startsWith('/')),
    create_directory: z.boolean(),
    directory_permissions: z.string().check(z.regex(/^0?[0-7]{3}$/)),
    timeout: Duration,
    max_size: Count,
    fsync: z.boolean(),
    recreate: z.boolean(),
    compaction: z.partial(
      z.strictObject({
        on_start: z.boolean(),
        on_rebound: z.boolean(),
        directory: z.string().check(z.startsWith('/')),
        rebound_needed_threshold_mib: Count,
        rebound_trigger_threshold_mib: Count,
        max_transaction_size: Count,
        check_interval: PositiveDuration,
        cleanup_on_start: z.boolean(),
      }),
    ),
  }),
);

const BasicAuth = z.partial(
  z.strictObject({
    client_auth: z.partial(
      z.strictObject({
        username: z.string(),
        password: z.string(),
        username_file: z.string(),
        password_file: z.string(),
      }),
    ),
    htpasswd: z.partial(z.strictObject({ file: z.string(), inline: z.string() })),
  }),
);

const HealthCheck = z.extend(HttpServer, {
  path: z.optional(z.string()),
  response_body: z.optional(z.partial(z.strictObject({ healthy: z.string(), unhealthy: z.string() }))),
});

const Otlp = z.strictObject({
  protocols: z.strictObject({
    http: z.nullable(
      z.extend(HttpServer, {
        traces_url_path: z.optional(z.string()),
        metrics_url_path: z.optional(z.string()),
        logs_url_path: z.optional(z.string()),
      }),
    ),
  }),
});

const MemoryLimiter = z
  .strictObject({
    check_interval: PositiveDuration,
    limit_mib: z.optional(Count),
    spike_limit_mib: z.optional(Count),
    limit_percentage: z.optional(Count),
    spike_limit_percentage: z.optional(Count),
    min_gc_interval_when_soft_limited: z.optional(Duration),
    min_gc_interval_when_hard_limited: z.optional(Duration),
    max_gc_interval_when_soft_limited: z.optional(Duration),
    max_gc_interval_when_hard_limited: z.optional(Duration),
  })
  .check(
    z.refine(({ limit_mib = 0, limit_percentage = 0 }) => limit_mib + limit_percentage > 0, 'has no limit'),
    z.refine(({ limit_mib = 0, spike_limit_mib = 0 }) => limit_mib === 0 || spike_limit_mib < limit_mib, 'spike'),
  );

const Batch = z
  .strictObject({
    // Unlike the queue, a batch cannot be measured in requests.
    sizer: z.enum(['items', 'bytes']),
    min_size: z.optional(Count),
    max_size: z.optional(Count),
    flush_timeout: z.optional(PositiveDuration),
    partition: z.optional(z.strictObject({ metadata_keys: Texts })),
  })
  .check(
    z.refine(({ min_size = 8192, max_size = 0 }) => max_size === 0 || max_size >= min_size, 'max_size below min_size'),
  );

const SendingQueue = z
  .strictObject({
    enabled: z.optional(z.boolean()),
    storage: z.string(),
    sizer: z.optional(z.enum(['requests', 'items', 'bytes'])),
    queue_size: z.optional(Positive),
    num_consumers: z.optional(Positive),
    block_on_overflow: z.optional(z.boolean()),
    // `wait_for_result` is refused together with `storage`.
    wait_for_result: z.optional(z.literal(false)),
    batch: z.optional(Batch),
  })
  .check(
    z.refine(
      ({ sizer = 'requests', queue_size = 1000, batch }) =>
        batch?.sizer !== sizer || (batch.min_size ?? 8192) <= queue_size,
      'min_size above queue_size',
    ),
  );

const OtlpHttp = z.strictObject({
  endpoint: z.url(),
  traces_endpoint: z.optional(z.url()),
  encoding: z.optional(z.enum(['proto', 'json'])),
  auth: z.strictObject({ authenticator: z.string() }),
  headers: z.record(z.string(), z.string()),
  // Langfuse reads no other.
  compression: z.optional(z.enum(['gzip', 'none'])),
  compression_params: z.optional(z.strictObject({ level: Count })),
  timeout: z.optional(Duration),
  proxy_url: z.optional(z.url()),
  tls: z.optional(Tls),
  read_buffer_size: z.optional(Count),
  write_buffer_size: z.optional(Count),
  disable_keep_alives: z.optional(z.boolean()),
  force_attempt_http2: z.optional(z.boolean()),
  http2_ping_timeout: z.optional(Duration),
  http2_read_idle_timeout: z.optional(Duration),
  idle_conn_timeout: z.optional(Duration),
  max_conns_per_host: z.optional(Count),
  max_idle_conns: z.optional(Count),
  max_idle_conns_per_host: z.optional(Count),
  sending_queue: SendingQueue,
  retry_on_failure: z.partial(
    z.strictObject({
      enabled: z.boolean(),
      initial_interval: Duration,
      max_interval: Duration,
      max_elapsed_time: Duration,
      multiplier: z.number(),
      randomization_factor: z.number(),
    }),
  ),
});

/** Components by their ids, `type` or `type/name`. */
function components<Shape extends z.ZodMiniType>(type: string, shape: Shape) {
  return z.record(z.string().check(z.regex(new RegExp(`^${type}(?:/\\w+)?$`))), shape);
}

export const CollectorConfig = z.strictObject({
  extensions: z.strictObject({
    health_check: HealthCheck,
    'basicauth/langfuse': BasicAuth,
    file_storage: FileStorage,
  }),
  receivers: components('otlp', Otlp),
  processors: components('memory_limiter', MemoryLimiter),
  exporters: components('otlp_http', OtlpHttp),
  service: z.strictObject({
    extensions: Texts,
    pipelines: z.strictObject({
      traces: z.strictObject({ receivers: Texts, processors: Texts, exporters: Texts }),
    }),
  }),
});
export type CollectorConfig = z.infer<typeof CollectorConfig>;
