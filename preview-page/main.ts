import type { ShownObservation, ShownSession, ShownTurn } from '../src/commands/preview/view-model.js';
import { renderDetails } from './details-view.js';
import { element, findPart } from './dom.js';
import { listenToKeys } from './keyboard.js';
import { findTitle, renderOverview } from './overview.js';
import { createSearchBox } from './search-box.js';
import { createSearch, type Match } from './search-index.js';
import { createSidebar, listPlaces, type Place } from './sidebar.js';
import { switchTheme } from './theme.js';
import { createTurnView, type TurnView } from './turn-view.js';

const data = findPart('sessions', HTMLScriptElement);
const sessions: readonly ShownSession[] = JSON.parse(data.text);
// Frees the text: thousands of turns would be in memory twice.
data.remove();

const places = listPlaces(sessions);
const [navigation, main, details] = [
  findPart('turns', HTMLElement),
  findPart('turn', HTMLElement),
  findPart('details', HTMLElement),
];
const help = findPart('help', HTMLDialogElement);
const menu = findPart('show-turns', HTMLButtonElement);
let query = '';
/** An overview has no timeline. */
let open: { readonly place: Place; readonly view: TurnView | undefined } | undefined;
let inDetails: ShownObservation | undefined;

const list = createSidebar(places, (place) => {
  openPlace(place);
  showNavigation(false);
});
const search = createSearchBox({
  find: createSearch(sessions),
  onQuery,
  onMatch,
  onLeave: focusTimeline,
});

/** Only the open turn or overview is in the page; it replaces the one before. */
function openPlace(place: Place): void {
  closeDetails();
  const { session, turn } = place;
  const view = turn && createTurnView(turn, query, openDetails);
  open = { place, view };
  main.replaceChildren(...(view?.content ?? renderOverview(session, openTurn)));
  main.scrollTop = 0;
  list.mark(place);
  document.title = `${findTitle(session)} – cc-langfuse preview`;
}

function openTurn(turn: ShownTurn): void {
  const place = places.find((each) => each.turn === turn);
  if (place) openPlace(place);
}

function focusTimeline(): void {
  open?.view?.timeline.focus();
}

function openDetails(observation: ShownObservation): void {
  const { view, place } = open ?? {};
  if (!view || !place?.turn) return;
  inDetails = observation;
  const content = renderDetails(observation, place.turn, { query, onClose: leaveDetails });
  details.hidden = false;
  details.replaceChildren(...content);
  details.scrollTop = 0;
  details.querySelector('mark')?.scrollIntoView({ block: 'center' });
  view.timeline.select(observation);
  view.timeline.focus();
}

function closeDetails(): void {
  details.hidden = true;
  details.replaceChildren();
  inDetails = undefined;
}

function leaveDetails(): void {
  closeDetails();
  focusTimeline();
}

function onQuery(entered: string, matches: readonly Match[]): void {
  query = entered;
  const counts = new Map<ShownTurn, number>();
  for (const { turn } of matches) counts.set(turn, (counts.get(turn) ?? 0) + 1);
  list.showMatchCounts(counts);
  if (open) openPlace(open.place);
}

function onMatch({ turn, observation }: Match): void {
  if (open?.place.turn !== turn) openTurn(turn);
  const { activeElement } = document;
  openDetails(observation);
  // Keep the focus where it was: while the user types, the next Enter goes to the next match.
  if (activeElement instanceof HTMLElement) activeElement.focus();
}

function isInTurns(): boolean {
  return !main.contains(document.activeElement) && !details.contains(document.activeElement);
}

function movePlace(step: 1 | -1): void {
  const next = open && places[places.indexOf(open.place) + step];
  if (!next) return;
  openPlace(next);
  list.focus(next);
}

function moveObservation(step: 1 | -1): void {
  const timeline = open?.view?.timeline;
  const next = timeline?.neighbour(step);
  if (!timeline || !next) return;
  if (inDetails) openDetails(next);
  timeline.select(next);
  timeline.focus();
}

function enter(): void {
  const timeline = open?.view?.timeline;
  const observation = timeline?.neighbour(0);
  if (isInTurns()) timeline?.focus();
  else if (observation) openDetails(observation);
}

function back(): void {
  if (inDetails) leaveDetails();
  else if (!search.clear() && open) list.focus(open.place);
}

function showNavigation(isShown: boolean): void {
  document.body.classList.toggle('with-turns', isShown);
  menu.setAttribute('aria-expanded', String(isShown));
}

navigation.append(...list.content);
listenToKeys({
  move: (step) => (isInTurns() ? movePlace(step) : moveObservation(step)),
  enter,
  back,
  search: () => search.focus(),
  theme: switchTheme,
  help: () => help.showModal(),
});
menu.addEventListener('click', () => showNavigation(!document.body.classList.contains('with-turns')));
findPart('theme', HTMLButtonElement).addEventListener('click', switchTheme);
findPart('show-help', HTMLButtonElement).addEventListener('click', () => help.showModal());
const [first] = places;
if (first) openPlace(first);
else main.append(element('p', { class: 'empty' }, 'Nothing would be sent.'));
