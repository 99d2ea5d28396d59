import { count, dayAndClock, duration } from "../part/format.ts";
import { dataTable } from "../part/data-table.ts";
import { element, type Markup } from "../part/markup.ts";
import type { ShadowCard } from "./overview.ts";
import { section } from "./section.ts";
import type { WhyCard } from "./why-card.ts";

/** Why answers of the last minutes were slow, and where their cached tokens were lost; nothing where nobody looks. */
export function whySection(shadow: ShadowCard | null): Markup | undefined {
  const why = shadow?.why;
  if (why === undefined) return undefined;
  if (why === null)
    return section(
      "why",
      "Why",
      element("p", { class: "card" }, "Nothing explained yet: it needs some minutes of traffic."),
    );
  const about = `The ${count(why.requests)} latest requests, as of ${dayAndClock(why.at)} UTC, under ${why.inForce}.`;
  return section(
    "why",
    "Why",
    ...why.sentences.map((sentence) => element("p", {}, sentence)),
    element("div", { class: "card table" }, parts(why), tokens(why)),
    element("p", {}, `${about} `, element("a", { href: "why" }, "As JSON")),
  );
}

function parts({ parts: all }: WhyCard): Markup {
  return dataTable({
    caption: "Parts of the mean time to the first token",
    columns: [
      { name: "Part", style: "text" },
      { name: "Time" },
      { name: "90 %" },
      { name: "What it is", style: "text wrap" },
    ],
    rows: all
      .filter(({ millis }) => millis !== 0)
      .map(({ part, millis, low, high, meaning }) => ({
        key: part,
        cells: [part, duration(millis), low === undefined ? "" : `${duration(low)} to ${duration(high)}`, meaning],
      })),
    folds: true,
  });
}

function tokens({ tokens: all }: WhyCard): Markup {
  return dataTable({
    caption: "Prompt tokens, and what cached ones were lost to",
    columns: [{ name: "Tokens", style: "text" }, { name: "Count" }, { name: "What it is", style: "text wrap" }],
    rows: all.map(({ what, tokens: some, meaning }) => ({ key: what, cells: [what, count(some), meaning] })),
    folds: true,
  });
}
