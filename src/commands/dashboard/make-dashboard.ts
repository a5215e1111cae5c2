import type { Dashboard, DashboardApi, Placement } from '../../langfuse/dashboards.js';
import { MARK, NAME, type PlacedWidget } from './charts.js';

/** Finds the dashboard that an earlier run made. One of the same name that someone else made is not touched. */
export function findOwn(dashboards: readonly Dashboard[]): Dashboard | undefined {
  return dashboards.find(({ name, description }) => name === NAME && description.startsWith(MARK));
}

/**
 * Makes the dashboard, or replaces the charts of the one that is there; what users have added to it stays. If anything is refused,
 * all is as it was before. Returns its id.
 */
export async function makeDashboard(
  api: DashboardApi,
  known: Dashboard | undefined,
  widgets: readonly PlacedWidget[],
  filters: readonly object[],
): Promise<string> {
  const { own, others } = await sortPlacements(api, known?.definition.widgets ?? []);
  const created: string[] = [];
  try {
    const placements: Placement[] = [];
    for (const { widget, place } of widgets) {
      const id = await api.createWidget(widget);
      created.push(id);
      placements.push(place(id));
    }
    const content = { name: NAME, description: MARK, filters, definition: { widgets: [...placements, ...others] } };
    const { id } = await (known ? api.changeDashboard(known.id, content) : api.createDashboard(content));
    // One that a user has put on another dashboard is not deleted.
    for (const { widgetId } of own) if (widgetId !== undefined) await api.deleteWidget(widgetId).catch(() => false);
    return id;
  } catch (error) {
    const left = await deleteAll(api, created);
    const { message } = error as Error;
    throw new Error(
      left === 0 ? `${message}; nothing was made` : `${message}; ${left} charts could not be removed again`,
    );
  }
}

async function sortPlacements(api: DashboardApi, placements: readonly Placement[]) {
  const [own, others]: [Placement[], Placement[]] = [[], []];
  for (const placement of placements) {
    const { widgetId } = placement;
    const description = widgetId === undefined ? undefined : await api.readDescription(widgetId);
    (description?.startsWith(MARK) ? own : others).push(placement);
  }
  return { own, others };
}

/** Returns how many could not be deleted. */
async function deleteAll(api: DashboardApi, ids: readonly string[]): Promise<number> {
  let left = 0;
  for (const id of ids) if (!(await api.deleteWidget(id).catch(() => false))) left += 1;
  return left;
}
