import type { ShownSession } from './session.js';

declare global {
  /** The page without any sessions; the build puts it in. */
  const PREVIEW_TEMPLATE: string;
}

const SLOT = '<!-- sessions -->';

/** The page that shows these sessions: one file that asks for nothing else. */
export function renderPage(template: string, sessions: readonly ShownSession[]): string {
  return template.replace(SLOT, () => `<script type="application/json" id="sessions">${asData(sessions)}</script>`);
}

/** JSON that can end no script element, and open no comment in one. */
function asData(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c');
}
