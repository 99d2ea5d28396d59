import { dataTable } from "../part/data-table.ts";
import { dayAndClock } from "../part/format.ts";
import { element, type Markup } from "../part/markup.ts";
import { pill } from "../part/pill.ts";
import type { PolicyCard } from "./overview.ts";
import { section } from "./section.ts";

export function policySection({ version, defaultProfile, profiles, changes }: PolicyCard): Markup {
  const others = profiles.filter((name) => name !== defaultProfile);
  const ready = others.length === 0 ? "" : ` Ready beside it: ${others.join(", ")}.`;
  const rows = changes.map((one, i) => ({
    key: `${one.at} ${i}`,
    cells: [
      dayAndClock(one.at),
      one.version === undefined
        ? pill("bad", "refused")
        : pill(one.version === version ? "good" : "plain", `version ${one.version}`),
      one.by === "" ? one.source : `${one.source}, ${one.by}`,
      one.detail,
    ],
  }));
  return section(
    "policy",
    "Policy",
    element("p", { class: "lead" }, `Version ${version} is in force: ${defaultProfile}.${ready}`),
    element(
      "div",
      { class: "card table" },
      dataTable({
        caption: "Versions of the policy and changes that were refused, newest first",
        columns: [
          { name: "Time (UTC)", style: "text" },
          { name: "Change", style: "text" },
          { name: "By", style: "text wrap" },
          { name: "Profile, or why refused", style: "text wrap" },
        ],
        rows,
        folds: true,
      }),
    ),
  );
}
