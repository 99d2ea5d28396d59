import { escaped } from "./format.ts";
import type { Attribute, MarkupContent, Markup } from "./markup.ts";

/** Elements of HTML that have no end. */
const VOID: ReadonlySet<string> = new Set(["br", "hr", "img", "input", "link", "meta"]);

/** The piece as HTML text, without its handlers. */
export function markupText(content: MarkupContent | readonly MarkupContent[]): string {
  if (content === undefined || content === false) return "";
  if (typeof content === "string") return escaped(content);
  return "tag" in content ? elementText(content) : content.map(markupText).join("");
}

function elementText({ tag, attributes, children }: Markup): string {
  const written = Object.entries(attributes).map(([name, value]) => attributeText(name, value));
  const open = `<${tag}${written.join("")}>`;
  return VOID.has(tag) ? open : `${open}${children.map(markupText).join("")}</${tag}>`;
}

function attributeText(name: string, value: Attribute): string {
  if (value === undefined || value === false || name === "key" || typeof value === "function") return "";
  return value === true ? ` ${name}` : ` ${name}="${escaped(String(value))}"`;
}
