import { groupBy } from '../shared/group-by.js';
import { listAccountSteps, listOfStep, type PlacedStep } from './account-steps.js';
import type { SessionScan, Use, Used } from './session-usage.js';

type Response = readonly [id: string, use: Use];

/**
 * Places the responses of a killed process in no account. It wrote no line, and the next process went on from the line before it, or
 * began an account of its own. So the account began later than they were, or lacks all of their tokens.
 */
export function separateUnaccounted(scan: SessionScan): SessionScan['responses'] {
  if (scan.points.length === 0) return scan.responses;
  const counted = [...scan.responses].filter(([, { point }]) => point !== undefined);
  const byPlace = groupBy(counted, ([, use]) => isBeforeAccounts(use, scan));
  const earlier = byPlace.get(true) ?? [];
  const byModel = groupBy(byPlace.get(false) ?? [], ([, { model }]) => model);
  const steps = groupBy(listAccountSteps({ ...scan, parent: undefined, uses: [] }, new Map()), ({ model }) => model);
  const lacking = [...steps].flatMap(([model, own]) => listLacking(byModel.get(model) ?? [], own));
  const others = [...earlier, ...lacking].map(([id, use]) => [id, { ...use, point: undefined }] as const);
  return new Map([...scan.responses, ...others]);
}

function isBeforeAccounts({ at, point: first }: Use, { points }: SessionScan): boolean {
  return points.slice(first).every(({ point: { startTime = 0 } }) => at < startTime);
}

/** Lists a model's responses whose tokens are all missing from the account: the first ones after the line before. */
function listLacking(responses: readonly Response[], steps: readonly PlacedStep[]): Response[] {
  if (!steps.every(({ isSplit }) => isSplit)) return [];
  const found: Response[] = [];
  const byPoint = groupBy(responses, ([, { point }]) => point);
  let lacking = countLacking(responses, steps);
  for (const span of joinOverlapping(steps)) {
    const during = listOfStep(byPoint, span).toSorted(([, a], [, b]) => a.at - b.at);
    let lackingHere = countLacking(during, span.steps);
    for (const response of during) {
      const counts = listCounts(response[1].used);
      // A process that has ended later has its tokens in a later line.
      if (!isWithin(counts, lacking) || !isWithin(counts, lackingHere)) continue;
      lacking = subtract(lacking, counts);
      lackingHere = subtract(lackingHere, counts);
      found.push(response);
    }
  }
  return found;
}

/** What responses used beyond what the account has. */
function countLacking(responses: readonly Response[], steps: readonly PlacedStep[]): Counts {
  const used = responses.reduce((sum, [, use]) => add(sum, listCounts(use.used)), NOTHING);
  return steps.reduce((left, { counts }) => subtract(left, listCounts(counts)), used);
}

/** Input, output, and what was read from the cache and written to it. */
type Counts = readonly number[];
const NOTHING: Counts = [0, 0, 0, 0];

function listCounts(used: Partial<Used>): Counts {
  const { input = 0, output = 0, cache_read_input_tokens: read = 0, cache_creation_input_tokens: written = 0 } = used;
  const { input_cache_creation_5m: for5m = 0, input_cache_creation_1h: for1h = 0 } = used;
  return [input, output, read, written + for5m + for1h];
}

const add = (a: Counts, b: Counts) => a.map((count, kind) => count + (b[kind] ?? 0));
const subtract = (a: Counts, b: Counts) => a.map((count, kind) => count - (b[kind] ?? 0));
const isWithin = (a: Counts, b: Counts) => a.every((count, kind) => count <= (b[kind] ?? 0));

/** Two processes that run at the same time go on from the same line. */
function joinOverlapping(steps: readonly PlacedStep[]) {
  const spans: { readonly firstPoint: number; lastPoint: number; readonly steps: PlacedStep[] }[] = [];
  for (const step of steps.toSorted((a, b) => a.firstPoint - b.firstPoint)) {
    const { firstPoint, lastPoint } = step;
    const span = spans.at(-1);
    if (span && span.lastPoint >= firstPoint) {
      span.steps.push(step);
      span.lastPoint = Math.max(span.lastPoint, lastPoint);
    } else spans.push({ firstPoint, lastPoint, steps: [step] });
  }
  return spans;
}
