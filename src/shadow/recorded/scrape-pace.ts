import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";

/** Gaps that are looked at: enough for their quartile. */
const GAPS_MAX = 1_000;
/** Endpoints whose last scrape is remembered. */
const ENDPOINTS_MAX = 10_000;
/** Fewer gaps are chance. */
const GAPS_MIN = 3;

/** How often a router's gauges were read, as its trace shows it. */
export class ScrapePace {
  readonly #last = new Map<EndpointId, Micros>();
  readonly #gaps: Micros[] = [];

  observe(at: Micros, endpoint: EndpointId): void {
    if (this.#gaps.length >= GAPS_MAX) return;
    const before = this.#last.get(endpoint);
    if (before !== undefined && at > before) this.#gaps.push(at - before);
    if (before !== undefined || this.#last.size < ENDPOINTS_MAX) this.#last.set(endpoint, at);
  }

  /**
   * In whole milliseconds; nothing where there were too few. The lower quartile of the gaps: scrapes that failed or came
   * late make some longer, nothing makes many shorter.
   */
  get found(): { readonly scrapeMicros?: Micros } {
    if (this.#gaps.length < GAPS_MIN) return {};
    const gap = this.#gaps.toSorted((a, b) => a - b)[this.#gaps.length >> 2]!;
    return { scrapeMicros: Math.max(1, Math.round(gap / MICROS_PER_MILLI)) * MICROS_PER_MILLI };
  }
}
