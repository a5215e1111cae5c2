import { readFileSync } from 'node:fs';
import { readSettings } from '../src/config/settings.js';
import { createRedactor } from '../src/observations/redaction/redact.js';
import { HOSTILE_UNITS, repeatUnit } from '../test/support/hostile-texts.js';
import { recordings, transcriptsOf } from '../test/support/recording.js';
import { alternate, median } from './measure.js';

const CHARS = 1_000_000;
/** An ordinary rule: one word and digits. */
const OWN_RULE = '[{"pattern": "CUST-\\\\d+"}]';

/** Finds the hostile text that takes longest, and compares it with one plain search of the same text; in ms per million characters. */
export async function benchHostileTexts(runs: number) {
  const redact = createRedactor([]);
  const times = HOSTILE_UNITS.map((unit) => {
    const text = repeatUnit(unit, CHARS);
    const each = Array.from({ length: 3 }, (_, run) => time(() => redact(`${text}${run}`)));
    return { unit, ms: median(each) };
  });
  const [slowest = { unit: '', ms: 0 }] = times.toSorted((a, b) => b.ms - a.ms);
  const text = repeatUnit(slowest.unit, CHARS);
  const { hostile, scan } = await alternate(
    {
      hostile: async () => time(() => createRedactor([])(text)),
      scan: async () => time(() => scanPlainly(text)),
    },
    runs,
  );
  return { unit: slowest.unit, hostile, scan };
}

/** Compares the redaction of all recorded lines without and with a rule of the user's own, which is run under a time limit. */
export async function benchOwnRule(runs: number) {
  const paths = recordings().flatMap(transcriptsOf);
  const texts = paths.flatMap((path) => readFileSync(path, 'utf8').split('\n'));
  const { redact: withRule = createRedactor([]) } = await readSettings({ CC_LANGFUSE_REDACT_EXTRA: OWN_RULE });
  const redactAll = (redact: (text: string) => string) => async () => time(() => texts.forEach(redact));
  return alternate(
    {
      withRule: redactAll(withRule),
      without: redactAll(createRedactor([])),
      scan: async () => time(() => texts.forEach(scanPlainly)),
    },
    runs,
  );
}

/** One pass over the text by a regular expression that looks for several words. */
function scanPlainly(text: string): boolean {
  return /(?:nowhere|neither|never)\d{8}/i.test(text);
}

function time(action: () => unknown): number {
  const startedAt = performance.now();
  action();
  return performance.now() - startedAt;
}
