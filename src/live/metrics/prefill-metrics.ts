import type { Registry } from "prom-client";
import { RecentRequests } from "#core/base/request-table.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { CounterTable, HistogramTable, LabelSlots } from "./labelled-series.ts";

/** Requests whose phases are remembered; with more at once the oldest are left out of the times. */
const REQUESTS_MAX = 65_536;
/** Orders, reasons and faults are closed sets. */
const LABELS_MAX = 64;
const PHASES = ["prefill", "handoff"] as const;

/** Where a request is on its two phases. */
interface Begun {
  decidedAt: Micros;
  prefilledAt: Micros | undefined;
}

/**
 * How requests fare whose prompt one endpoint computes and another one answers: the two parts of their time to first token,
 * and what failed on the way.
 */
export class PrefillMetrics {
  readonly #handoffs = new LabelSlots(LABELS_MAX);
  readonly #reasons = new LabelSlots(LABELS_MAX);
  readonly #faults = new LabelSlots(LABELS_MAX);
  readonly #shared: CounterTable;
  readonly #colocated: CounterTable;
  readonly #failed: CounterTable;
  readonly #seconds: HistogramTable;
  readonly #begun = new RecentRequests<Begun>(REQUESTS_MAX);
  /** Some decision was by a profile that shares prompts: from then on it is to see all. */
  isUsed = false;

  constructor(registry: Registry, bounds: readonly number[]) {
    const counter = (name: string, help: string, label: string, slots: LabelSlots) =>
      new CounterTable(registry, `gnomon_${name}`, help, [{ name: label, slots }]);
    this.#shared = counter(
      "disaggregated_total",
      "Decisions in which one endpoint computes the prompt for another.",
      "handoff",
      this.#handoffs,
    );
    this.#colocated = counter(
      "colocated_total",
      "Decisions of such profiles in which one endpoint does both, by reason.",
      "reason",
      this.#reasons,
    );
    this.#failed = counter(
      "prefill_faults_total",
      "Prompts that did not reach the endpoint that answers, because the prefill endpoint failed or the transfer was lost.",
      "fault",
      this.#faults,
    );
    this.#seconds = new HistogramTable(
      registry,
      {
        name: "gnomon_disaggregation_stage_seconds",
        help: "Parts of the time to first token: prefill, from the decision until the prompt is computed; handoff, from then until the first token.",
        bounds,
      },
      (slot) => ({ stage: PHASES[slot]! }),
    );
  }

  accepted(input: Input, decision: Decision | undefined): void {
    this.isUsed = true;
    if (decision?.kind === "routed") this.#decided(decision);
    switch (input.kind) {
      case "prefill-finished":
        this.#prefilled(input);
        break;
      case "first-token":
        this.#answered(input);
        break;
      case "prefill-failed":
        this.#failed.add(1, this.#faults.slot(input.fault));
        break;
      case "transfer-failed":
        this.#failed.add(1, this.#faults.slot("transfer"));
        break;
      case "request-finished":
        this.#begun.delete(input.requestId);
        break;
      default:
    }
  }

  #decided({ at, requestId, prefill, colocated }: Decision & { readonly kind: "routed" }): void {
    if (colocated !== undefined) this.#colocated.add(1, this.#reasons.slot(colocated));
    if (prefill === undefined) return this.#begun.delete(requestId);
    this.#shared.add(1, this.#handoffs.slot(prefill.handoff));
    this.#begun.set(requestId, { decidedAt: at, prefilledAt: undefined });
  }

  #prefilled({ at, requestId }: { readonly at: Micros; readonly requestId: string }): void {
    const begun = this.#begun.get(requestId);
    if (begun === undefined || begun.prefilledAt !== undefined) return;
    begun.prefilledAt = at;
    this.#seconds.observe(0, (at - begun.decidedAt) / MICROS_PER_SECOND);
  }

  #answered({ at, requestId }: { readonly at: Micros; readonly requestId: string }): void {
    const begun = this.#begun.get(requestId);
    if (begun?.prefilledAt === undefined) return;
    this.#seconds.observe(1, (at - begun.prefilledAt) / MICROS_PER_SECOND);
    this.#begun.delete(requestId);
  }
}
