import { mix32 } from "../base/random.ts";
import type { Micros } from "../base/units.ts";
import type { OutlierReason, OutlierRules } from "./endpoint-rules.ts";

/** How one endpoint fared since the last look, and how long it is ejected. */
export class OutlierRecord {
  served = 0;
  failed = 0;
  /** Of requests with several tokens. */
  #tpotMicros = 0;
  #tpotCount = 0;
  #until: Micros = 0;
  #ejections = 0;
  #reason: "" | OutlierReason = "";

  /** Mean time per output token over so many requests; undefined for fewer. */
  tpotMicros(requestsMin: number): number | undefined {
    return this.#tpotCount < requestsMin ? undefined : this.#tpotMicros / this.#tpotCount;
  }

  /** Share of its requests that failed; undefined for fewer than `requestsMin`. */
  failureShare(requestsMin: number): number | undefined {
    const all = this.served + this.failed;
    return all < requestsMin ? undefined : this.failed / all;
  }

  tookPerToken(micros: number): void {
    this.#tpotMicros += micros;
    this.#tpotCount++;
  }

  reason(at: Micros): "" | OutlierReason {
    return at < this.#until ? this.#reason : "";
  }

  /** The next interval begins. */
  begin(wasFound: boolean, requestsMin: number): void {
    const isKnown = this.served + this.failed >= requestsMin;
    this.served = 0;
    this.failed = 0;
    this.#tpotMicros = 0;
    this.#tpotCount = 0;
    if (isKnown && !wasFound && this.#ejections > 0) this.#ejections--;
  }

  /** Takes it out; returns until when. Times differ by a fifth between endpoints, so that they do not return together. */
  eject(at: Micros, reason: OutlierReason, nameHash: number, rules: OutlierRules): Micros {
    this.#ejections++;
    this.#reason = reason;
    const base = Math.min(rules.ejectMicrosMax, rules.ejectMicros * this.#ejections);
    this.#until = at + Math.round(base * (0.8 + 0.4 * (mix32(nameHash + this.#ejections) / 2 ** 32)));
    return this.#until;
  }
}
