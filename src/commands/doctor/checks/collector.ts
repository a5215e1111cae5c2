import type { CollectorFacts, NetworkFacts } from '../facts/server.js';
import { broken, type Finding, ok } from '../finding.js';
import { shownUrl, withoutCredentials } from '../masking.js';
import { explained } from '../silence.js';
import { isTaken } from './doors.js';

const VARIABLE = 'CC_LANGFUSE_OTLP_URL';

/** Whether a Collector takes what it is sent: that is all that it tells. */
export function checkCollector({ collector, otlp }: CollectorFacts, network: NetworkFacts): Finding[] {
  const url = shownUrl(collector.url);
  if (otlp.kind === 'none') {
    const asked = { url, variable: VARIABLE, proxy: withoutCredentials(network.proxy), probe: url };
    const { what, fix } = explained(otlp, asked);
    return [broken('endpoint', what, fix, { url, code: otlp.code })];
  }
  const { status, problem = `it answers ${status}` } = otlp.answer;
  const details = { url, status };
  if (isTaken(otlp)) return [ok('endpoint', `the Collector at ${url} takes OpenTelemetry (${status})`, details)];
  return [broken('endpoint', `the Collector at ${url}: ${problem}`, remedy(status), details)];
}

function remedy(status: number): string {
  if (status === 401 || status === 403) return 'mend CC_LANGFUSE_OTLP_HEADERS';
  return status >= 500 || status === 429 ? 'wait, or ask who runs it' : `mend ${VARIABLE}`;
}
