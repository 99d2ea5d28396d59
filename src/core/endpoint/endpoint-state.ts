import type { Fault } from "./fault.ts";
import type { Outcome } from "./outcome.ts";
import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { Breaker, type BreakerChange, type BreakerOptions } from "./breaker.ts";
import { INELIGIBLE, type MayServe } from "./eligibility.ts";
import type { Endpoint, EndpointId, Load } from "./endpoint.ts";
import { Ewma } from "./ewma.ts";
import type { OutlierReason, OutlierRules } from "./endpoint-rules.ts";
import type { PrefixSource } from "./knowledge.ts";
import type { Account } from "./ledger.ts";
import { nameHash, mix32 } from "../base/random.ts";
import { SlowReturn, type Standing } from "./slow-return.ts";
import type { Freshness, Snapshot } from "./snapshot.ts";

/** Room for prefixes where the engine's KV size is unknown: 31,250 blocks of 16 tokens (llm-d's default). */
export const KV_CAPACITY_TOKENS_DEFAULT = 500_000;

const OBSERVED_LATENCY_TAU_MICROS = 10 * MICROS_PER_SECOND;

/** When a request was sent and first answered, and the output tokens that it had, where they are known. */
interface RequestTimes {
  readonly sentAt: Micros;
  readonly firstTokenAt: Micros | undefined;
  /** Of each answer; undefined where there was none after the first, or nobody counted them. */
  readonly tpotMicros: Micros | undefined;
}

/** What of a request decides whether an endpoint may serve it. */
interface Asked {
  readonly model: string;
  readonly subset?: readonly EndpointId[] | undefined;
}

/** One endpoint as the router keeps it; what a decision sees of it is the Snapshot part. */
export class EndpointState implements Snapshot, Account {
  readonly id: EndpointId;
  endpoint: Endpoint;
  /** Its number in the prefix index. */
  readonly slot: number;
  readonly breaker: Breaker;
  /** While it is judged hung, or is let back; undefined where it is well. */
  slowReturn: SlowReturn | undefined = undefined;
  cordoned = false;
  /** Its engine sleeps. */
  asleep = false;
  /** Its health checks fail. */
  unhealthy = false;
  readonly outlier = new OutlierRecord();
  readonly ejections: Record<OutlierReason, number> = { failures: 0, slow: 0 };
  /** Requests that were placed there. */
  placed = 0;
  /** Since when it gets requests, or will, of those times the last; before all time where that was never noticed. */
  beganAt: Micros = -Infinity;

  at: Micros = 0;
  freshness: Freshness = "unknown";
  loadAgeMicros = -1;
  load: Load | undefined = undefined;
  effectiveLoad = 0;
  kvUtilization = 0;
  requestsInFlight = 0;
  /** Those of them that peers reported. */
  peerRequestsInFlight = 0;
  prefillTokensQueued = 0;
  decodeTokens = 0;
  promptTokensInFlight = 0;
  hitBlocks = 0;
  cachedBlocks: number | undefined = undefined;
  hitTokens = 0;
  /** Prompt tokens that it is believed to hold, wherever: more than `hitTokens` where some are in its host's memory. */
  heldTokens = 0;
  prefixSource: PrefixSource = "approximate";

  #loadObservedAt: Micros = 0;
  /**
   * The last scrape's `kvUtilization`, where it had one. Beside the load and never undefined: what may be undefined V8 puts
   * into a box before it is copied to a field of numbers, one for each endpoint and decision.
   */
  #kvScraped = 0;
  #kvIsScraped = false;
  /** Requests that the last scrape showed beyond our own. */
  #foreignRequests = 0;
  readonly #ttft = new Ewma(OBSERVED_LATENCY_TAU_MICROS);
  readonly #tpot = new Ewma(OBSERVED_LATENCY_TAU_MICROS);

  constructor(endpoint: Endpoint, slot: number, breaker: BreakerOptions, changed?: (change: BreakerChange) => void) {
    this.id = endpoint.id;
    this.endpoint = endpoint;
    this.slot = slot;
    this.breaker = new Breaker(breaker, changed, nameHash(endpoint.id));
  }

  get ttftMicros(): number | undefined {
    return this.#ttft.value;
  }

  get tpotMicros(): number | undefined {
    return this.#tpot.value;
  }

  get standing(): Standing {
    if (this.slowReturn === undefined) return "well";
    return this.slowReturn.isOut ? "hung" : "returning";
  }

  get kvCapacityTokens(): number {
    return this.endpoint.kvCapacityTokens ?? KV_CAPACITY_TOKENS_DEFAULT;
  }

  /** Why it may not serve a request, before any filter, 0 where it may; without `may` any may. Indexes into ELIGIBILITY. */
  eligibility(at: Micros, { model, subset }: Asked, tried: readonly EndpointId[], may?: MayServe): number {
    const { models } = this.endpoint;
    if (models.length > 0 && !models.includes(model)) return INELIGIBLE.unknownModel;
    if (may !== undefined && !may(this.endpoint)) return INELIGIBLE.role;
    if (subset !== undefined && !subset.includes(this.id)) return INELIGIBLE.subset;
    if (this.cordoned) return INELIGIBLE.cordoned;
    if (this.asleep) return INELIGIBLE.asleep;
    if (tried.includes(this.id)) return INELIGIBLE.tried;
    const { slowReturn } = this;
    if (slowReturn?.isOut === true) return INELIGIBLE.hung;
    if (this.unhealthy) return INELIGIBLE.unhealthy;
    if (this.outlier.reason(at) !== "") return INELIGIBLE.outlier;
    if (!this.breaker.allows(at)) return INELIGIBLE.breaker;
    return slowReturn === undefined || slowReturn.allows(this.requestsInFlight) ? 0 : INELIGIBLE.breaker;
  }

  /** It is new, or is back from then on. */
  began(at: Micros): void {
    this.beganAt = at;
  }

  observeLoad(at: Micros, load: Load): void {
    this.load = load;
    this.#loadObservedAt = at;
    this.#kvScraped = load.kvUtilization ?? 0;
    this.#kvIsScraped = load.kvUtilization !== undefined;
    const seen = load.running === undefined ? 0 : load.running + (load.waiting ?? 0);
    this.#foreignRequests = Math.max(0, seen - this.requestsInFlight);
  }

  firstToken(at: Micros, ttftMicros: number): void {
    this.#ttft.add(at, ttftMicros);
    this.#served();
    this.breaker.answered(at - ttftMicros);
  }

  /**
   * An attempt failed. That it hangs was judged by more than one request; it and sleep keep the endpoint out by
   * themselves.
   */
  attemptFailed(at: Micros, fault: Fault, sentAt: Micros): void {
    if (fault === "hung" || fault === "asleep") this.breaker.undecided(sentAt);
    else this.breaker.failed(at, fault, sentAt);
    if (fault !== "saturated" && fault !== "draining" && fault !== "asleep") this.outlier.failed++;
  }

  requestEnded(at: Micros, outcome: Outcome, { sentAt, firstTokenAt, tpotMicros }: RequestTimes): void {
    if (outcome === "failed" || outcome === "timeout") this.outlier.failed++;
    if (outcome === "failed") this.breaker.failed(at, "cut", sentAt);
    else if (outcome === "timeout") this.breaker.failed(at, "timeout", sentAt);
    else if (outcome !== "ok") this.breaker.undecided(sentAt);
    if (outcome !== "ok") return;
    const wasTripped = this.breaker.isTripped;
    this.breaker.succeeded(sentAt);
    if (wasTripped && !this.breaker.isTripped) this.began(at);
    this.outlier.served++;
    if (firstTokenAt === undefined) this.#served();
    if (tpotMicros === undefined) return;
    this.#tpot.add(at, tpotMicros);
    this.outlier.tookPerToken(tpotMicros);
  }

  /** A peer's request ended here. How it fares with other routers is no evidence for the breaker of this one. */
  peerEnded(at: Micros, outcome: Outcome, { firstTokenAt, tpotMicros }: Omit<RequestTimes, "sentAt">): void {
    if (outcome !== "ok") return;
    if (firstTokenAt === undefined) this.#served();
    if (tpotMicros !== undefined) this.#tpot.add(at, tpotMicros);
  }

  /** It is judged hung from now on. */
  suspend(): void {
    this.slowReturn = new SlowReturn();
  }

  /** It is let back, if it was judged hung; after `servedUntilWell` served requests (at least 0) it is well. */
  resume(servedUntilWell: number): void {
    if (this.slowReturn?.isOut !== true) return;
    if (servedUntilWell === 0) this.slowReturn = undefined;
    else this.slowReturn.letBack(servedUntilWell, this.requestsInFlight);
  }

  /** It sent a first token or a whole answer. */
  #served(): void {
    if (this.slowReturn?.served() === "well") this.slowReturn = undefined;
  }

  /** Brings the derived gauges up to `at`. */
  refresh(at: Micros, staleAfterMicros: number): void {
    this.at = at;
    const load = this.load;
    this.loadAgeMicros = load === undefined ? -1 : at - this.#loadObservedAt;
    this.freshness = load === undefined ? "unknown" : this.loadAgeMicros <= staleAfterMicros ? "fresh" : "stale";
    const fresh = this.freshness === "fresh";
    this.effectiveLoad = this.requestsInFlight + (fresh ? this.#foreignRequests : 0);
    if (fresh && this.#kvIsScraped) this.kvUtilization = this.#kvScraped;
    else this.kvUtilization = Math.min(1, this.tokensInFlight / this.kvCapacityTokens);
  }

  /** Some request waits for its first token there, as far as is known. */
  get isAwaited(): boolean {
    return this.prefillTokensQueued > 0 || (this.freshness === "fresh" && (this.load?.waiting ?? 0) > 0);
  }

  /** Tokens whose keys and values our requests occupy there, as far as we can know. */
  get tokensInFlight(): number {
    return this.prefillTokensQueued + this.decodeTokens;
  }
}

/** How one endpoint fared since the last look, and how long it is ejected. */
class OutlierRecord {
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
