import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import { endpointName } from "./endpoint-name.ts";
import { ordered, type Ranked } from "./endpoint-order.ts";
import type { Overview } from "./overview.ts";

/** Of the last minute's requests, failed and refused together; above it clients notice. */
const LOST_MAX = 0.01;

/** The state of all in one sentence, and what to do about it. */
export function healthLine(overview: Overview): Markup {
  const { level, text, todo } = judged(overview);
  return element("p", { class: "lead verdict" }, element("b", { class: level }, text), " ", todo);
}

function judged({ endpoints, gateway, traffic: { lastMinute } }: Overview): {
  readonly level: "good" | "warn" | "bad";
  readonly text: string;
  readonly todo: MarkupContent | readonly MarkupContent[];
} {
  const ranked = ordered(endpoints, "trouble");
  const serious = ranked.filter(({ trouble }) => trouble.severity > 1);
  const [worst] = ranked;
  const look = worst === undefined ? "" : [...lookAt(worst), ...alsoIn(serious.slice(1))];
  const lost = lastMinute.failed + lastMinute.refused;
  if (endpoints.every(({ state }) => state !== "ready"))
    return { level: "bad", text: "Nothing is served.", todo: waitsFor(gateway.waitsFor) };
  if (lost > LOST_MAX * lastMinute.requests)
    return {
      level: "bad",
      text: `${lost} of ${lastMinute.requests} requests failed or were refused in the last minute.`,
      todo: serious.length > 0 ? look : "The decisions below state why.",
    };
  if (serious.length > 0)
    return {
      level: "warn",
      text: `Requests are served; ${serious.length} of ${endpoints.length} endpoints serve little or nothing.`,
      todo: look,
    };
  if (gateway.requestsQueued > 0)
    return {
      level: "warn",
      text: `Requests wait for room: ${gateway.requestsQueued}.`,
      todo: "More engines, or lower limits, end that.",
    };
  return { level: "good", text: "All is well.", todo: "Nothing to do." };
}

function lookAt({ endpoint, trouble: { signs, todo } }: Ranked): MarkupContent[] {
  return ["Look at ", endpointName(endpoint.id), ` first: ${signs[0] ?? ""}. ${todo}`];
}

/** So many more are named. */
const ALSO_MAX = 2;

function alsoIn(others: readonly Ranked[]): MarkupContent[] {
  if (others.length === 0) return [];
  const named = others
    .slice(0, ALSO_MAX)
    .flatMap(({ endpoint }, i) => [i === 0 ? " " : ", ", endpointName(endpoint.id)]);
  const more = others.length > ALSO_MAX ? ` and ${others.length - ALSO_MAX} more` : "";
  return [" Then", ...named, `${more}.`];
}

function waitsFor([first]: readonly string[]): string {
  return first === undefined ? "No endpoint is ready." : `It waits for ${first}.`;
}
