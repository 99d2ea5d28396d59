import { simulate } from "#sim/simulate.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { NO_LATENCY } from "#sim/setting/simulation-options.ts";
import { ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { listed } from "../sim/cluster.ts";
import { ROUTER, RULES, SCRAPE_MICROS, SHARING_ROUTER } from "./twin-rules.ts";
import { endpointId, engineOf, labelsOf, type TwinScript } from "./twin-script.ts";
import { Words } from "./word.ts";

/** Puts the simulator through a script; inputs and decisions with their times. */
export function simulated(script: TwinScript, rules: PathRules = RULES) {
  const { endpoints, requests, events, admission, roles } = script;
  const words = new Words();
  const times: number[] = [];
  const { path, requests: ends } = simulate({
    router: { ...(roles ? SHARING_ROUTER : ROUTER), ...(admission && { admission }) },
    engines: Array.from({ length: endpoints }, (_, i) => ({
      config: engineOf(script),
      endpoint: {
        id: endpointId(i),
        models: ["tiny"],
        labels: labelsOf(script, i),
        kvCapacityTokens: undefined,
        concurrencyMax: undefined,
      },
    })),
    fleetEvents: events,
    rules,
    arrivals: new ListedArrivals(
      requests.map(({ at, promptTokens, outputTokens }, i) => {
        const one = listed(i, at, promptTokens, outputTokens);
        return { ...one, route: { ...one.route, model: "tiny" } };
      }),
    ),
    signals: { mode: "scrape", intervalMicros: SCRAPE_MICROS, phase: "together", delayMicros: 0, lossShare: 0 },
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: true,
    observe: (input, decision) => {
      words.take(input, decision);
      times.push(input.at);
    },
  });
  return { words: words.all, times, path, ends };
}
