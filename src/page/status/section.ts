import { type MarkupContent, element, type Markup } from "../part/markup.ts";

/** A part of the page that screen readers list as a landmark, by its heading. */
export function section(id: string, heading: string, ...content: readonly MarkupContent[]): Markup {
  const label = `${id}-heading`;
  return element("section", { id, "aria-labelledby": label }, element("h2", { id: label }, heading), content);
}
