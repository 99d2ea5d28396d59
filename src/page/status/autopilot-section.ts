import { dayAndClock } from "../part/format.ts";
import { element, type Markup } from "../part/markup.ts";
import { pill } from "../part/pill.ts";
import type { AutopilotCard } from "./autopilot-overview.ts";
import { section } from "./section.ts";

/** What the shadow proposes; nothing where it searches nothing. */
export function autopilotSection(card: AutopilotCard | null): Markup | false {
  if (card === null) return false;
  const { searches, latest, proposals, startsAlone } = card;
  const how = startsAlone ? "one that is surely better starts by itself" : "a proposal waits for a yes";
  const lead = `${searches} ${searches === 1 ? "search" : "searches"} for a better policy; ${how}.`;
  return section(
    "autopilot",
    "Autopilot",
    element("p", { class: "lead" }, `${lead}${latest === "" ? "" : ` The latest: ${latest}.`}`),
    element(
      "ul",
      {},
      proposals.map((one) => element("li", { key: one.name }, proposalText(one), " ", statePill(one.state))),
    ),
  );
}

function proposalText(one: AutopilotCard["proposals"][number]): string {
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  const gain = `${percent(one.gain)} (${percent(one.gainLow)} to ${percent(one.gainHigh)})`;
  const who = one.by === "" ? "" : `, by ${one.by}`;
  const command = one.state === "waiting" ? ` gnomon autopilot accept ${one.name} starts its rollout.` : "";
  const detail = one.detail === "" ? "" : `: ${one.detail}`;
  return `${dayAndClock(one.at)} UTC, ${one.name}: ${one.objective} ${gain} better than ${one.inForce}, predicted${who}${detail}.${command}`;
}

function statePill(state: string): Markup {
  return pill(state === "waiting" ? "warn" : state === "started" ? "good" : "plain", state);
}
