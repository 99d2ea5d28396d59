import { element, type Markup } from "./markup.ts";

/** A state in a word, with the colour that it is known by; the word alone is enough. */
export function pill(level: "good" | "warn" | "bad" | "plain", text: string): Markup {
  return element("span", { class: `pill ${level}` }, text);
}
