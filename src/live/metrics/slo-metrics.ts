import type { Registry } from "prom-client";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { RecentRequests } from "#core/base/request-table.ts";
import { type Slo, type SloResult, sloResults } from "#core/request/slo.ts";
import type { Micros } from "#core/base/units.ts";
import { CounterTable, LabelSlots } from "./labelled-series.ts";

/** Requests in flight whose targets are remembered; with more at once the oldest count for nothing. */
const REQUESTS_MAX = 65_536;
/** Clients name classes; further ones share "other". */
const CLASSES_MAX = 64;
/** Arms of all rollouts together, and those without one. */
const ARMS_MAX = 64;
const TARGETS_MAX = 8;

interface Promised {
  readonly slo: Slo;
  readonly sloClass: string;
  readonly arrivedAt: Micros;
  arm: string;
  firstTokenAt: Micros | undefined;
}

/** Goodput: how many of the requests that are promised times got them, by class and by arm of a rollout. */
export class SloMetrics {
  readonly #classes = new LabelSlots(CLASSES_MAX);
  readonly #arms = new LabelSlots(ARMS_MAX);
  readonly #targets = new LabelSlots(TARGETS_MAX);
  readonly #results = new LabelSlots(TARGETS_MAX);
  readonly #requests: CounterTable;
  readonly #promised = new RecentRequests<Promised>(REQUESTS_MAX);

  constructor(registry: Registry) {
    this.#requests = new CounterTable(
      registry,
      "gnomon_slo_requests_total",
      "Finished requests that had latency targets, by the outcome of each target and of all together.",
      [
        { name: "slo_class", slots: this.#classes },
        { name: "arm", slots: this.#arms },
        { name: "target", slots: this.#targets },
        { name: "result", slots: this.#results },
      ],
    );
  }

  /** Classes that had to share the series of others. */
  get overflows(): number {
    return this.#classes.overflows;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (input.kind === "request-arrived") {
      const { id, slo, sloClass } = input.request;
      if (slo === undefined) return;
      const arm = armOf(decision);
      this.#promised.set(id, { slo, sloClass, arrivedAt: input.at, arm, firstTokenAt: undefined });
      return;
    }
    // Most gateways promise nothing.
    if (this.#promised.size === 0) return;
    if (input.kind === "first-token") {
      const one = this.#promised.get(input.requestId);
      if (one !== undefined) one.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") this.#finished(input);
  }

  #finished({ at, requestId, outcome, outputTokens }: Extract<Input, { kind: "request-finished" }>): void {
    const one = this.#promised.get(requestId);
    if (one === undefined) return;
    this.#promised.delete(requestId);
    const { slo, sloClass, arm, arrivedAt, firstTokenAt } = one;
    const results = sloResults(slo, { outcome, arrivedAt, firstTokenAt, endedAt: at, outputTokens });
    if (results === undefined) return;
    for (const [target, result] of Object.entries(results) as [string, SloResult][])
      this.#requests.add(
        1,
        this.#classes.slot(sloClass),
        this.#arms.slot(arm),
        this.#targets.slot(target),
        this.#results.slot(result),
      );
  }
}

/** "rollout/arm"; "" outside of a rollout. */
function armOf(decision: Decision | undefined): string {
  return decision?.rollout === undefined ? "" : `${decision.rollout.name}/${decision.rollout.arm}`;
}
