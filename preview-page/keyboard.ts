/** What the keys do. */
interface KeyCommands {
  move(step: 1 | -1): void;
  enter(): void;
  back(): void;
  search(): void;
  theme(): void;
  help(): void;
}

const KEYS: { readonly [key: string]: (commands: KeyCommands) => void } = {
  j: ({ move }) => move(1),
  ArrowDown: ({ move }) => move(1),
  k: ({ move }) => move(-1),
  ArrowUp: ({ move }) => move(-1),
  Enter: ({ enter }) => enter(),
  ArrowRight: ({ enter }) => enter(),
  Escape: ({ back }) => back(),
  ArrowLeft: ({ back }) => back(),
  '/': ({ search }) => search(),
  t: ({ theme }) => theme(),
  '?': ({ help }) => help(),
};

/** Handles the keys that no field, button or dialog needs itself. */
export function listenToKeys(commands: KeyCommands): void {
  document.addEventListener('keydown', (event) => {
    const { key, target, ctrlKey, metaKey, altKey } = event;
    if (ctrlKey || metaKey || altKey || !(target instanceof Element)) return;
    if (target.closest('input, dialog')) return;
    if (key === 'Enter' && target.closest('button:not([aria-current]), summary')) return;
    const command = KEYS[key];
    if (!command) return;
    event.preventDefault();
    command(commands);
  });
}
