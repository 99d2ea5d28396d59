import type { Micros } from "../base/units.ts";
import { ADMIT, type Admission, type AdmissionPolicy, type OnLimit, above } from "./admission.ts";
import type { LimitUse } from "./limit-use.ts";
import { InFlightCount } from "./in-flight-count.ts";

export interface HardCapOptions {
  /** Requests in flight at most, of all tenants together. */
  readonly requestsMax: number;
  readonly onLimit: OnLimit;
  /** Until a delayed request is asked about again. */
  readonly retryMicros: Micros;
}

/** At most so many requests in flight. */
export class HardCap implements AdmissionPolicy {
  readonly name = "hard-cap";
  readonly holds = true;
  readonly continues: boolean;
  readonly #options: HardCapOptions;
  readonly #inFlight: InFlightCount;

  /** With `previous` it goes on counting where that one was. */
  constructor(options: HardCapOptions, previous?: HardCap) {
    this.#options = options;
    this.continues = previous !== undefined;
    this.#inFlight = previous === undefined ? new InFlightCount() : previous.#inFlight;
  }

  check(): Admission {
    const { requestsMax, onLimit, retryMicros } = this.#options;
    return this.#inFlight.of("") < requestsMax ? ADMIT : above(onLimit, "hard-cap", retryMicros);
  }

  admitted(): void {
    this.#inFlight.add("");
  }

  ended(): void {
    this.#inFlight.remove("");
  }

  uses(): LimitUse[] {
    return [{ subject: "", of: "requests", used: this.#inFlight.of(""), max: this.#options.requestsMax }];
  }
}
