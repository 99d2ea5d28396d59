import { assert } from "../assert.ts";
import { ADMIT, type AdmissionPolicy } from "./admission.ts";

export interface HardCapOptions {
  /** Requests in flight at most, of all tenants together. */
  readonly requestsMax: number;
  readonly onLimit: "reject" | "delay";
  /** Until a delayed request is asked about again. */
  readonly retryMicros: number;
}

/** At most so many requests in flight. */
export function hardCap({ requestsMax, onLimit, retryMicros }: HardCapOptions): AdmissionPolicy {
  let inFlight = 0;
  return {
    name: "hard-cap",
    decide() {
      if (inFlight < requestsMax) {
        inFlight++;
        return ADMIT;
      }
      const reason = "hard-cap";
      return onLimit === "reject" ? { action: "reject", reason } : { action: "delay", micros: retryMicros, reason };
    },
    ended() {
      assert(inFlight > 0, "a request that ends was admitted");
      inFlight--;
    },
  };
}
