import { compact, count, duration, percent } from "../part/format.ts";
import { type MarkupContent, element, type Markup } from "../part/markup.ts";
import type { Overview } from "./overview.ts";
import { troubleOf } from "./trouble.ts";

interface Tile {
  readonly name: string;
  readonly value: MarkupContent;
  readonly note: MarkupContent;
}

/** The state of everything in a row of figures. */
export function headline(overview: Overview): Markup {
  return element(
    "dl",
    { class: "tiles" },
    tilesOf(overview).map(({ name, value, note }) =>
      element(
        "div",
        {},
        element("dt", {}, name),
        element("dd", {}, element("b", {}, value), element("span", {}, note)),
      ),
    ),
  );
}

function tilesOf({ endpoints, traffic: { lastMinute }, gateway, policy, rollouts }: Overview): Tile[] {
  const troubled = endpoints.filter((one) => troubleOf(one).severity > 0).length;
  const ready = endpoints.filter(({ state }) => state === "ready").length;
  const waiting = endpoints.reduce((sum, { known }) => sum + (known?.waiting ?? 0), 0);
  const { requests, failed, refused, ttft, tpot, hitRatio, outputTokens, seconds } = lastMinute;
  const running = rollouts.find(({ phase }) => phase === "running" || phase === "paused");
  return [
    {
      name: "Endpoints ready",
      value: `${ready} of ${endpoints.length}`,
      note: troubled === 0 ? element("span", { class: "good" }, "no trouble") : bad(`${troubled} in trouble`),
    },
    {
      name: "Requests, last minute",
      value: `${compact(requests / seconds)}/s`,
      note:
        failed + refused === 0
          ? "none failed, none refused"
          : bad(`${count(failed)} failed, ${count(refused)} refused`),
    },
    { name: "TTFT, median", value: duration(ttft?.p50), note: `p99 ${duration(ttft?.p99)}` },
    { name: "TPOT, median", value: duration(tpot?.p50), note: `p99 ${duration(tpot?.p99)}` },
    {
      name: "Prompt tokens cached",
      value: percent(hitRatio ?? NaN, 0),
      note: `${compact(outputTokens / seconds)} tokens/s generated`,
    },
    { name: "In flight", value: count(gateway.requestsInFlight), note: waits(waiting, gateway.requestsQueued) },
    {
      name: "Gateway",
      value: percent(gateway.process.cpu, 0),
      note: gatewayNote(gateway),
    },
    {
      name: "Policy",
      value: policy.defaultProfile,
      note: running === undefined ? `version ${policy.version}` : `version ${policy.version}, rollout ${running.phase}`,
    },
  ];
}

/** Held for so long, every answer that passes stutters. */
const HELD_MILLIS_MAX = 100;

function gatewayNote({ process: { loopHeldMillis, memoryBytes } }: Overview["gateway"]): MarkupContent {
  const held = `of a core; loop held ${duration(loopHeldMillis)} at most`;
  const memory = `${count(Math.round(memoryBytes / 1e6))} MB`;
  return loopHeldMillis > HELD_MILLIS_MAX
    ? element("span", { class: "warn" }, `${held}, ${memory}`)
    : `${held}, ${memory}`;
}

function waits(inEngines: number, here: number): MarkupContent {
  const text = `${count(inEngines)} wait in engines`;
  return here === 0 ? text : element("span", { class: "warn" }, `${text}, ${count(here)} here`);
}

function bad(text: string): Markup {
  return element("span", { class: "bad" }, text);
}
