import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { FORECAST_UNSURE } from "#core/scorer/predicted-latency.ts";
import type { IntakeListener } from "../base/intake.ts";
import type { LastingFault } from "./lasting-faults.ts";

/** As the alert GnomonForecastsUnsure has it. */
const HOLD_MICROS = 30 * 60 * 1_000_000;

/** Whether most decisions since the last look were made without the forecast that the profile is for. */
export class UnsureForecasts implements IntakeListener {
  #decisions = 0;
  #unsure = 0;
  #isMost = false;

  /** Inputs that are decided. */
  static readonly kinds: readonly Input["kind"][] = ["request-arrived", "request-released"];

  accepted(_: Input, decision: Decision | undefined): void {
    if (decision?.kind !== "routed") return;
    this.#decisions++;
    if (decision.reason === FORECAST_UNSURE) this.#unsure++;
  }

  /** Without a decision nothing has changed. */
  faults(): LastingFault[] {
    if (this.#decisions > 0) this.#isMost = 2 * this.#unsure > this.#decisions;
    this.#decisions = 0;
    this.#unsure = 0;
    if (!this.#isMost) return [];
    return [
      {
        kind: "forecasts-unsure",
        key: "",
        detail: "forecasts of first tokens have been further off than a moving average for most requests",
        done: "tokens decide in their place; state the engine of each endpoint (endpoints[].engine), as `gnomon calibrate` writes it",
        holdMicros: HOLD_MICROS,
      },
    ];
  }
}
