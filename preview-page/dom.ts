type Child = Node | string | undefined;
type Attributes = { readonly [name: string]: string | number | undefined };

/** Creates an element. Its children are text or elements, never markup, so nothing in a transcript can run. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Tag] {
  const created = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) created.setAttribute(name, String(value));
  }
  created.append(...children.filter((child) => child !== undefined));
  return created;
}

/** Finds an element of page.html. */
export function findPart<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

export function button(label: string, attributes: Attributes, onClick: () => void): HTMLButtonElement {
  const created = element('button', { type: 'button', ...attributes }, label);
  created.addEventListener('click', onClick);
  return created;
}
