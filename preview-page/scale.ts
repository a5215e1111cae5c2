/** A span of time as it lies across a turn. */
interface Span {
  readonly startTime: number;
  readonly endTime: number;
}

const LEAST_PERCENT = 0.35;
const MOST_TICKS = 6;
const STEPS = [1, 2, 5, 10];

/** Places a bar where its time lies within the whole, and as long as it took. */
export function place(bar: HTMLElement, { startTime, endTime }: Span, whole: Span): void {
  const total = Math.max(1, whole.endTime - whole.startTime);
  const width = Math.max(LEAST_PERCENT, ((endTime - startTime) / total) * 100);
  const left = Math.min(((startTime - whole.startTime) / total) * 100, 100 - width);
  bar.style.left = `${left.toFixed(3)}%`;
  bar.style.width = `${width.toFixed(3)}%`;
}

/** Round moments within a span of so many ms, at most six. */
export function ticksFor(totalMs: number): number[] {
  const least = Math.max(1, totalMs / MOST_TICKS);
  const magnitude = 10 ** Math.floor(Math.log10(least));
  const step = magnitude * (STEPS.find((each) => each * magnitude >= least) ?? 10);
  return Array.from({ length: Math.floor(totalMs / step) + 1 }, (_, index) => index * step);
}
