import type { LastingFault } from "./lasting-faults.ts";

/** As the alert GnomonForecastsUnsure has it. */
const HOLD_MICROS = 30 * 60 * 1_000_000;

/** Since the start. */
export interface PlacedRequests {
  readonly placed: number;
  /** Without the forecast that their profile is for. */
  readonly unsure: number;
}

/** Whether most decisions since the last look were made without the forecast that the profile is for. */
export class UnsureForecasts {
  readonly #counts: () => PlacedRequests;
  #last: PlacedRequests = { placed: 0, unsure: 0 };
  #isMost = false;

  constructor(counts: () => PlacedRequests) {
    this.#counts = counts;
  }

  /** Without a decision nothing has changed. */
  faults(): LastingFault[] {
    const { placed, unsure } = this.#counts();
    const since = { placed: placed - this.#last.placed, unsure: unsure - this.#last.unsure };
    if (since.placed > 0) this.#isMost = 2 * since.unsure > since.placed;
    this.#last = { placed, unsure };
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
