import type { ShownObservation, ShownSession, ShownTurn } from '../src/commands/preview/session.js';
import { detailsView } from './details-view.js';
import { element, part } from './dom.js';
import { listenToKeys } from './keyboard.js';
import { searchBox } from './search-box.js';
import { type Hit, searcher } from './search-index.js';
import { sidebar } from './sidebar.js';
import { switchTheme } from './theme.js';
import { type TurnView, turnView } from './turn-view.js';

const data = part('sessions', HTMLScriptElement);
const sessions: readonly ShownSession[] = JSON.parse(data.text);
// Thousands of turns are not to be held twice.
data.remove();

const turns = sessions.flatMap((session) => session.turns);
const [navigation, main, details] = [
  part('turns', HTMLElement),
  part('turn', HTMLElement),
  part('details', HTMLElement),
];
const help = part('help', HTMLDialogElement);
const menu = part('show-turns', HTMLButtonElement);
let query = '';
let open: { readonly turn: ShownTurn; readonly view: TurnView } | undefined;
let inDetails: ShownObservation | undefined;

const list = sidebar(sessions, (turn) => {
  openTurn(turn);
  showNavigation(false);
});
const search = searchBox({ find: searcher(sessions), onQuery, onHit, onLeave: () => open?.view.timeline.focus() });

/** Only the open turn is in the page: the others are made when they are opened. */
function openTurn(turn: ShownTurn): void {
  closeDetails();
  const view = turnView(turn, query, openDetails);
  open = { turn, view };
  main.replaceChildren(...view.content);
  main.scrollTop = 0;
  list.mark(turn);
}

function openDetails(observation: ShownObservation): void {
  if (!open) return;
  inDetails = observation;
  const content = detailsView(observation, open.turn, { query, onClose: leaveDetails });
  details.hidden = false;
  details.replaceChildren(...content);
  details.scrollTop = 0;
  details.querySelector('mark')?.scrollIntoView({ block: 'center' });
  open.view.timeline.select(observation);
  open.view.timeline.focus();
}

function closeDetails(): void {
  details.hidden = true;
  details.replaceChildren();
  inDetails = undefined;
}

function leaveDetails(): void {
  closeDetails();
  open?.view.timeline.focus();
}

function onQuery(wanted: string, hits: readonly Hit[]): void {
  query = wanted;
  const counts = new Map<ShownTurn, number>();
  for (const { turn } of hits) counts.set(turn, (counts.get(turn) ?? 0) + 1);
  list.markHits(counts);
  if (open) openTurn(open.turn);
}

function onHit({ turn, observation }: Hit): void {
  if (open?.turn !== turn) openTurn(turn);
  const { activeElement } = document;
  openDetails(observation);
  // Where someone types, the next Enter is for the next hit.
  if (activeElement instanceof HTMLElement) activeElement.focus();
}

function isInTurns(): boolean {
  return !main.contains(document.activeElement) && !details.contains(document.activeElement);
}

function moveTurn(step: 1 | -1): void {
  const next = open && turns[turns.indexOf(open.turn) + step];
  if (!next) return;
  openTurn(next);
  list.focus(next);
}

function moveObservation(step: 1 | -1): void {
  const timeline = open?.view.timeline;
  const next = timeline?.neighbour(step);
  if (!timeline || !next) return;
  if (inDetails) openDetails(next);
  timeline.select(next);
  timeline.focus();
}

function enter(): void {
  const timeline = open?.view.timeline;
  const observation = timeline?.neighbour(0);
  if (isInTurns()) timeline?.focus();
  else if (observation) openDetails(observation);
}

function back(): void {
  if (inDetails) leaveDetails();
  else if (!search.clear() && open) list.focus(open.turn);
}

function showNavigation(isShown: boolean): void {
  document.body.classList.toggle('with-turns', isShown);
  menu.setAttribute('aria-expanded', String(isShown));
}

navigation.append(...list.content);
listenToKeys({
  move: (step) => (isInTurns() ? moveTurn(step) : moveObservation(step)),
  enter,
  back,
  search: () => search.focus(),
  theme: switchTheme,
  help: () => help.showModal(),
});
menu.addEventListener('click', () => showNavigation(!document.body.classList.contains('with-turns')));
part('theme', HTMLButtonElement).addEventListener('click', switchTheme);
part('show-help', HTMLButtonElement).addEventListener('click', () => help.showModal());
const [first] = turns;
if (first) openTurn(first);
else main.append(element('p', { class: 'empty' }, 'Nothing would be sent.'));
