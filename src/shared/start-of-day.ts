/** Local midnight, so many days later. */
export function startOfDay(now: Date, days = 0): number {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days).getTime();
}
