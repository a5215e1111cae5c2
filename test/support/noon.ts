const HOUR_MS = 3_600_000;
/** How many hours the zone is ahead of UTC. */
const HOURS = 12 - new Date().getUTCHours();

/** A time zone in which it is about noon, and the clocks never change: no day ends while a test runs. */
export const NOON_ZONE = `Etc/GMT${HOURS > 0 ? '-' : '+'}${Math.abs(HOURS)}`;

/** A moment as the clocks of that zone show it. */
export function atNoonZone(moment: string): string {
  return new Date(Date.parse(moment) + HOURS * HOUR_MS).toISOString();
}
