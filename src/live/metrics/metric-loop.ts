import type { Registry } from "prom-client";
import { LoopDelay } from "../base/loop-delay.ts";
import { NO_LABELS, registerFamily } from "./metric-family.ts";

/** Behind prom-client's names, whose own watch wakes the loop a hundred times a second. */
const FIGURES: readonly (readonly [name: string, help: string, of: (delay: LoopDelay) => number])[] = [
  ["min", "The minimum recorded event loop delay.", (delay) => delay.min],
  ["max", "The maximum recorded event loop delay.", (delay) => delay.max],
  ["mean", "The mean of the recorded event loop delays.", (delay) => delay.mean],
  ["stddev", "The standard deviation of the recorded event loop delays.", (delay) => delay.stddev],
  ["p50", "The 50th percentile of the recorded event loop delays.", (delay) => delay.percentile(50)],
  ["p90", "The 90th percentile of the recorded event loop delays.", (delay) => delay.percentile(90)],
  ["p99", "The 99th percentile of the recorded event loop delays.", (delay) => delay.percentile(99)],
];

/** Put in the place of prom-client's families, of the time since the page before. */
export function registerLoopDelay(registry: Registry, prefix: string): void {
  const delay = new LoopDelay();
  delay.enable();
  FIGURES.forEach(([figure, help, of], i) => {
    const name = `${prefix}nodejs_eventloop_lag_${figure}_seconds`;
    registry.removeSingleMetric(name);
    const rows = () => {
      const row = { value: of(delay), labels: NO_LABELS, sharedLabels: NO_LABELS };
      if (i === FIGURES.length - 1) delay.reset();
      return [row];
    };
    registerFamily(registry, { name, help, type: "gauge", rows });
  });
}
