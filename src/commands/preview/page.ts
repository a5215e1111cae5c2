import type { ShownSession } from './view-model.js';

declare global {
  /** The page without sessions; the build inserts it. */
  const PREVIEW_TEMPLATE: string;
}

/** The page as one HTML file that loads nothing else. */
export function renderPage(template: string, sessions: readonly ShownSession[]): string {
  // Without `<`, the data can neither close its script element nor open a comment.
  const data = JSON.stringify(sessions).replaceAll('<', '\\u003c');
  return template.replace('<!-- sessions -->', () => `<script type="application/json" id="sessions">${data}</script>`);
}
