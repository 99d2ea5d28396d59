import type { Micros } from "#core/base/units.ts";
import type { Flight } from "./path/flight.ts";
import type { Outcomes } from "./result/outcomes.ts";
import type { SimulationOptions } from "./setting/simulation-options.ts";

/** Admission and priority by rules that are not the router's own, as other simulators have them in front of it. */
export class AdmissionGate {
  /** Requests that admission refused, by its reason, and times that it asked one to wait. */
  readonly rejections: Map<string, number> = new Map();
  delays = 0;
  readonly #options: Pick<SimulationOptions, "admission" | "priority">;
  readonly #outcomes: Outcomes;

  constructor(options: Pick<SimulationOptions, "admission" | "priority">, outcomes: Outcomes) {
    this.#options = options;
    this.#outcomes = outcomes;
  }

  /** Whether it may go on now, or after how many microseconds to ask again, at least 1. */
  admits(flight: Flight, at: Micros): "admitted" | "refused" | Micros {
    const { admission, priority } = this.#options;
    const verdict = admission?.check(flight.route, at);
    if (verdict?.action === "delay") {
      this.delays++;
      return Math.max(1, verdict.micros);
    }
    if (verdict?.action === "reject") {
      this.rejections.set(verdict.reason, (this.rejections.get(verdict.reason) ?? 0) + 1);
      return "refused";
    }
    admission?.admitted(flight.route, at);
    if (priority !== undefined) {
      flight.priority = priority.priorityOf(flight.route, at);
      flight.route = { ...flight.route, priority: flight.priority };
      this.#outcomes.priority[flight.row] = flight.priority;
    }
    return "admitted";
  }
}
