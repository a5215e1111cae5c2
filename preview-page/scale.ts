interface Span {
  readonly startTime: number;
  readonly endTime: number;
}

const MIN_PERCENT = 0.35;
const MAX_TICKS = 6;
const STEPS = [1, 2, 5, 10];

/** Sets a bar's left edge and width to the scale of the whole. */
export function placeBar(bar: HTMLElement, { startTime, endTime }: Span, whole: Span): void {
  const total = Math.max(1, whole.endTime - whole.startTime);
  const width = Math.max(MIN_PERCENT, ((endTime - startTime) / total) * 100);
  const left = Math.min(((startTime - whole.startTime) / total) * 100, 100 - width);
  bar.style.left = `${left.toFixed(3)}%`;
  bar.style.width = `${width.toFixed(3)}%`;
}

/** Chooses at most six round moments within a duration. */
export function chooseTicks(totalMs: number): number[] {
  const least = Math.max(1, totalMs / MAX_TICKS);
  const magnitude = 10 ** Math.floor(Math.log10(least));
  const step = magnitude * (STEPS.find((each) => each * magnitude >= least) ?? 10);
  return Array.from({ length: Math.floor(totalMs / step) + 1 }, (_, index) => index * step);
}
