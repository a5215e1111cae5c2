type Child = Node | string | undefined;
type Attributes = { readonly [name: string]: string | number | undefined };

/** An element. What it holds is text or other elements, never markup: what a transcript says is shown and never obeyed. */
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

/** A part of the page's own markup. */
export function part<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

export function button(label: string, attributes: Attributes, onClick: () => void): HTMLButtonElement {
  const created = element('button', { type: 'button', ...attributes }, label);
  created.addEventListener('click', onClick);
  return created;
}
