import { type MarkupContent, element, type Markup } from "./markup.ts";

/** A drawing with its heading, on a card. */
export function figure(heading: MarkupContent, ...drawing: readonly MarkupContent[]): Markup {
  return element("figure", { class: "card" }, element("figcaption", {}, heading), drawing);
}
