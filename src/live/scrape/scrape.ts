import type { Dispatcher } from "undici";
import { nameHash } from "#core/base/random.ts";
import type { Micros } from "#core/base/units.ts";
import { askEngine, type RequestFault } from "../endpoints/engine-request.ts";
import { inTurns, STAYS } from "../base/loop-turn.ts";
import { type EnginePage, enginePage } from "./scrape-map.ts";

/**
 * Time between two scrapes of one server. vLLM renders its page on the event loop that also streams tokens: 19 ms idle
 * and 34 ms under load where it was measured, so that a scrape every 200 ms takes a sixth of that loop and one every
 * second 2-3 %. The router's own ledger counts at once whatever it dispatches, hence a scrape only has to bring what
 * others sent, preemptions and drift; nothing is gained by asking more often.
 */
export const SCRAPE_INTERVAL_MILLIS_DEFAULT = 1_000;

/** A page that takes longer is given up; the server is then busy, which is no evidence of its being gone. */
export const SCRAPE_TIMEOUT_MILLIS_DEFAULT = 2_000;

export interface ScraperOptions {
  readonly url: string;
  readonly apiKey: string | undefined;
  readonly dispatcher: Dispatcher;
  readonly timeoutMillis: number;
  readonly pageBytesMax: number;
  readonly now: () => Micros;
  readonly stop: AbortSignal;
}

export type ScrapeResult =
  | { readonly kind: "page"; readonly at: Micros; readonly page: EnginePage }
  | { readonly kind: "failed"; readonly at: Micros; readonly fault: RequestFault; readonly detail: string };

/** What one server's scrapes came to; each counter only grows. */
export interface ScrapeCounts {
  scrapes: number;
  readonly errors: Record<RequestFault, number>;
  /** Turns that passed while an earlier scrape was still under way. */
  skipped: number;
  /** Wanted lines that could not be read. */
  malformedLines: number;
}

/** Fetches and reads the metrics page of one server, once per call. The caller sees to it that calls do not overlap. */
export class Scraper {
  readonly counts: ScrapeCounts = {
    scrapes: 0,
    errors: { connect: 0, timeout: 0, cut: 0, status: 0, "too-large": 0, garbage: 0, "no-files": 0, stopped: 0 },
    skipped: 0,
    malformedLines: 0,
  };
  /** Of the last page that was read, -1 before the first. */
  lastPageAt: Micros = -1;
  /** Why the last scrape failed, "" when it did not. */
  lastError = "";
  readonly #options: ScraperOptions;

  constructor(options: ScraperOptions) {
    this.#options = options;
  }

  async scrape(): Promise<ScrapeResult> {
    const { url, now, pageBytesMax, ...ask } = this.#options;
    this.counts.scrapes++;
    const answer = await askEngine(`${url}/metrics`, { ...ask, bytesMax: pageBytesMax });
    const at = now();
    if (answer.kind === "failed") return this.#failed(at, answer.fault, answer.detail);
    const page = await inTurns(enginePage(answer.text), STAYS);
    this.counts.malformedLines += page.malformed;
    if (page.ranks.size === 0) return this.#failed(at, "garbage", "its /metrics has no signal of an engine");
    this.lastPageAt = at;
    this.lastError = "";
    return { kind: "page", at, page };
  }

  #failed(at: Micros, fault: RequestFault, detail: string): ScrapeResult {
    this.counts.errors[fault]++;
    this.lastError = detail;
    return { kind: "failed", at, fault, detail };
  }
}

/** Scraped at the same time, about. */
const TOGETHER = 8;

/**
 * Where in the interval a server's turns are. A fleet is scraped in groups of a few: what one scrape takes is for two
 * thirds code that a quiet processor has to fetch anew, and together they fetch it once; yet a large fleet is not scraped
 * all at once. The group comes from the name, so that a restart does not change who goes when.
 */
export function phaseOf(url: string, interval: Micros, servers: number): Micros {
  const groups = Math.max(1, Math.ceil(servers / TOGETHER));
  return Math.floor(((nameHash(url) % groups) * interval) / groups);
}

/** The next turn after `at` on a grid of intervals. */
export function nextTurn(at: Micros, intervalMicros: Micros, phaseMicros: Micros): Micros {
  return phaseMicros + (Math.floor((at - phaseMicros) / intervalMicros) + 1) * intervalMicros;
}
