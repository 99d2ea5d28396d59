import { type Content, element, type Markup } from "./markup.ts";

/** A drawing with its heading, on a card. */
export function figure(heading: Content, ...drawing: readonly Content[]): Markup {
  return element("figure", { class: "card" }, element("figcaption", {}, heading), drawing);
}
