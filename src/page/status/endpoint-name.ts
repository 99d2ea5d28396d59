import { element, type Markup } from "../part/markup.ts";

/** An endpoint as people know it: what it has of its own, and softer what all of a cluster's have alike. */
export function endpointName(id: string): Markup {
  const [, own = "", rest = ""] = /^(?:https?:\/\/)?([^.]*[a-z][^.]*(?=\.)|.*)(.*)$/.exec(id) ?? ["", id];
  return element("span", {}, own, rest !== "" && element("span", { class: "soft" }, rest));
}
