import type { BlockChain } from "../prompt/block-chain.ts";
import { assert } from "../base/assert.ts";
import { GUESSED, type Knowledge } from "../endpoint/knowledge.ts";
import { HOST_MEMORY_PRICE, type HostMemoryPrice, sparedTokens } from "../prefix/host-memory-price.ts";
import { type PrefixIndex, type ReportedIndex, takesReports } from "../prefix/prefix-index.ts";
import { INELIGIBLE, type MayServe } from "../endpoint/eligibility.ts";
import type { EndpointRules } from "../endpoint/endpoint-rules.ts";
import { FleetStanding, type NobodyReason } from "./fleet-standing.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import type { BreakerChange, BreakerOptions } from "../endpoint/breaker.ts";
import type { Endpoint, EndpointId } from "../endpoint/endpoint.ts";
import { EndpointState, KV_CAPACITY_TOKENS_DEFAULT } from "../endpoint/endpoint-state.ts";
import type { EndpointRow } from "./endpoint-row.ts";

export interface FleetOptions {
  /** Takes the endpoints' prefixes; empty at the start. */
  readonly index: PrefixIndex;
  /** Tokens per block of the prompts' chains, for turning a KV capacity into blocks. */
  readonly blockTokens: number;
  /** A scrape older than this is stale, and the ledger stands in for it. */
  readonly staleAfterMicros: Micros;
  readonly breaker: BreakerOptions;
  /** Looks into an engine: leading blocks of a chain that its cache holds. Left out where nobody can. */
  readonly engineCache?: ((at: Micros, endpoint: EndpointId, blocks: BlockChain) => number) | undefined;
  /** What is done with endpoints beside it; nothing where it is left out. */
  readonly endpointRules?: EndpointRules | undefined;
  /** What hits in the memory of engines' hosts are worth; HOST_MEMORY_PRICE where it is left out. */
  readonly hostMemory?: HostMemoryPrice | undefined;
  /** Called as a breaker opens or closes, for a log. It must not come back to the router. */
  readonly breakerChanged?: (endpoint: EndpointId, change: BreakerChange) => void;
}

/** Who may compute prompts that others answer. */
interface PrefillRoles {
  may(stage: "prefill", endpoint: Endpoint): boolean;
  mayPair(one: Endpoint, other: Endpoint): boolean;
}

/** The endpoints of one router, in order of id, so that sums and ties do not depend on who joined first. */
export class Fleet {
  readonly #options: FleetOptions;
  #blockTokens: number;
  readonly #byId = new Map<EndpointId, EndpointState>();
  states: readonly EndpointState[] = [];
  ids: readonly EndpointId[] = [];
  /** Why states[i] may not serve the request at hand: an index into ELIGIBILITY, 0 when it may. */
  ineligible = new Uint8Array(0);
  #hits = new Int32Array(0);
  #held = new Int32Array(0);
  /** The index, where it takes the engines' events. */
  readonly #reported: ReportedIndex | undefined;

  readonly #standing: FleetStanding;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#reported = takesReports(options.index) ? options.index : undefined;
    this.#blockTokens = options.blockTokens;
    this.#standing = new FleetStanding(options.endpointRules);
  }

  get(id: EndpointId): EndpointState | undefined {
    return this.#byId.get(id);
  }

  join(endpoint: Endpoint, at: Micros): void {
    assert(!this.#byId.has(endpoint.id), "an endpoint joins once");
    const slot = this.#options.index.join(endpoint.id, this.#capacityBlocks(endpoint));
    const { breaker, breakerChanged } = this.#options;
    const state = new EndpointState(endpoint, slot, breaker, (change) => breakerChanged?.(endpoint.id, change));
    state.began(at);
    this.#byId.set(endpoint.id, state);
    this.#reorder();
  }

  change(endpoint: Endpoint): void {
    const state = this.#byId.get(endpoint.id);
    if (state === undefined) return;
    state.endpoint = endpoint;
    this.#options.index.resize(state.slot, this.#capacityBlocks(endpoint));
  }

  leave(id: EndpointId): void {
    const state = this.#byId.get(id);
    if (state === undefined) return;
    this.#options.index.leave(state.slot);
    this.#byId.delete(id);
    this.#reorder();
  }

  /** The index starts afresh: blocks of another size never match those that it holds. */
  resizeBlocks(blockTokens: number): void {
    this.#blockTokens = blockTokens;
    for (const { slot, endpoint } of this.states) {
      this.#options.index.clear(slot);
      this.#options.index.resize(slot, this.#capacityBlocks(endpoint));
    }
  }

  cordon(id: EndpointId, cordoned: boolean, at: Micros): void {
    const state = this.#byId.get(id);
    if (state === undefined) return;
    if (state.cordoned && !cordoned) state.began(at);
    state.cordoned = cordoned;
  }

  /** Its engine sleeps from now on, or is awake. */
  slept(id: EndpointId, asleep: boolean, at: Micros): void {
    const state = this.#byId.get(id);
    if (state === undefined) return;
    if (state.asleep && !asleep) state.began(at);
    state.asleep = asleep;
  }

  /** Its checks fail from now on, or do not any more. */
  checked(id: EndpointId, healthy: boolean, at: Micros): void {
    const state = this.#byId.get(id);
    if (state === undefined) return;
    if (state.unhealthy && healthy) state.began(at);
    state.unhealthy = !healthy;
  }

  /** Brings every snapshot up to this request; true when a ledger stands in for a scrape. */
  refresh(at: Micros, request: RouteRequest): boolean {
    this.#options.index.advance?.(at);
    if (request.blocks.length > 0 && request.cacheRead !== false)
      this.#options.index.match(request.blocks, this.#hits, request.promptTokensExact);
    else this.#hits.fill(0);
    const held = this.#heldBlocks(request);
    const { staleAfterMicros, engineCache } = this.#options;
    let usedLedger = false;
    for (let i = 0; i < this.states.length; i++) {
      const state = this.states[i]!;
      state.refresh(at, staleAfterMicros);
      state.cachedBlocks = engineCache?.(at, state.id, request.blocks);
      this.#setHits(state, request, held[state.slot]!);
      state.prefixSource = request.promptTokensExact ? this.#knowledge(state).source : "approximate";
      if (state.freshness !== "fresh") usedLedger = true;
    }
    return usedLedger;
  }

  /** By slot, the blocks of `#hits` and those that follow them in the memory of hosts. */
  #heldBlocks({ blocks, promptTokensExact, cacheRead }: RouteRequest): Int32Array {
    const reported = this.#reported;
    if (reported?.holdsHostBlocks !== true || !promptTokensExact || cacheRead === false) return this.#hits;
    reported.matchHost(blocks, this.#hits, this.#held);
    return this.#held;
  }

  #setHits(state: EndpointState, request: RouteRequest, heldBlocks: number): void {
    const deviceBlocks = this.#hits[state.slot]!;
    state.hitBlocks = deviceBlocks;
    state.hitTokens = hitTokens(request, deviceBlocks);
    state.heldTokens = state.hitTokens;
    if (heldBlocks === deviceBlocks) return;
    state.heldTokens = hitTokens(request, heldBlocks);
    const { blockTokens } = request.blocks;
    const device = deviceBlocks * blockTokens;
    const spared = sparedTokens(state.heldTokens - device, this.#options.hostMemory ?? HOST_MEMORY_PRICE);
    state.hitTokens = device + spared;
    state.hitBlocks = deviceBlocks + Math.floor(spared / blockTokens);
  }

  /** Takes an endpoint out, or lets it back slowly. */
  suspend(id: EndpointId): void {
    this.#byId.get(id)?.suspend();
  }

  resume(id: EndpointId, servedUntilWell: number): void {
    this.#byId.get(id)?.resume(servedUntilWell);
  }

  /**
   * Marks who may not serve. No verdict on endpoints can empty the fleet: FleetStanding. Returns why nobody is left, or
   * undefined.
   */
  markIneligible(
    at: Micros,
    request: RouteRequest,
    tried: readonly EndpointId[],
    may?: MayServe,
  ): NobodyReason | undefined {
    const { states, ineligible } = this;
    const { endpointRules } = this.#options;
    if (endpointRules?.outliers !== undefined) this.#standing.look(at, states);
    let served = 0;
    for (let i = 0; i < states.length; i++) {
      const verdict = states[i]!.eligibility(at, request, tried, may);
      ineligible[i] = verdict;
      if (verdict === 0) served++;
    }
    const all = served > 0 && served === states.length;
    const nobody = all ? undefined : this.#standing.letBack(ineligible);
    if (nobody === undefined && endpointRules?.slowStart !== undefined)
      this.#standing.hold(at, request.id, states, ineligible);
    return nobody;
  }

  /**
   * Marks who may not compute the prompt of a request that `answers` answers. Nothing is ignored: `answers` can do it as
   * well.
   */
  markForPrefill(
    at: Micros,
    request: RouteRequest,
    tried: readonly EndpointId[],
    answers: EndpointState,
    roles: PrefillRoles,
  ): void {
    const may = (endpoint: Endpoint): boolean => roles.may("prefill", endpoint);
    for (let i = 0; i < this.states.length; i++) {
      const state = this.states[i]!;
      const verdict = state.eligibility(at, request, tried, may);
      const paired = verdict === 0 && !roles.mayPair(answers.endpoint, state.endpoint) ? INELIGIBLE.pair : verdict;
      this.ineligible[i] = state === answers ? INELIGIBLE.answers : paired;
    }
  }

  /**
   * Of those that may serve, only endpoints whose label has the value may from now on. False where none of them has it:
   * then nothing is changed, since a request that is served elsewhere is better than one that fails.
   */
  restrict(label: string, value: string): boolean {
    const outside = (i: number) => this.states[i]!.endpoint.labels[label] !== value;
    if (!this.states.some((_, i) => this.ineligible[i] === 0 && !outside(i))) return false;
    for (let i = 0; i < this.states.length; i++)
      if (this.ineligible[i] === 0 && outside(i)) this.ineligible[i] = INELIGIBLE.pool;
    return true;
  }

  /** Mean of a value over the endpoints that are well and may take such a request; undefined where there is none. */
  meanOverTakers(at: Micros, request: RouteRequest, valueOf: (state: EndpointState) => number): number | undefined {
    let sum = 0;
    let count = 0;
    for (const state of this.states) {
      if (state.eligibility(at, request, NONE_TRIED) !== 0) continue;
      state.refresh(at, this.#options.staleAfterMicros);
      sum += valueOf(state);
      count++;
    }
    return count === 0 ? undefined : sum / count;
  }

  /**
   * Whether some endpoint that is well may take such a request; with `idlerThan`, one where nobody waits and that
   * is less busy than that one even with the request.
   */
  hasTaker(
    at: Micros,
    request: RouteRequest,
    tried: readonly EndpointId[],
    may?: MayServe,
    idlerThan?: EndpointState,
  ): boolean {
    idlerThan?.refresh(at, this.#options.staleAfterMicros);
    return this.states.some((state) => {
      if (state.eligibility(at, request, tried, may) !== 0) return false;
      if (idlerThan === undefined) return true;
      state.refresh(at, this.#options.staleAfterMicros);
      return !state.isAwaited && state.effectiveLoad + 1 < idlerThan.effectiveLoad;
    });
  }

  rows(at: Micros): EndpointRow[] {
    return this.states.map((state) => {
      state.refresh(at, this.#options.staleAfterMicros);
      return {
        id: state.id,
        endpoint: state.endpoint,
        at,
        freshness: state.freshness,
        loadAgeMicros: state.loadAgeMicros,
        load: state.load,
        effectiveLoad: state.effectiveLoad,
        kvUtilization: state.kvUtilization,
        requestsInFlight: state.requestsInFlight,
        peerRequestsInFlight: state.peerRequestsInFlight,
        prefillTokensQueued: state.prefillTokensQueued,
        decodeTokens: state.decodeTokens,
        promptTokensInFlight: state.promptTokensInFlight,
        hitBlocks: 0,
        hitTokens: 0,
        prefixSource: this.#knowledge(state).source,
        ttftMicros: state.ttftMicros,
        tpotMicros: state.tpotMicros,
        placed: state.placed,
        cordoned: state.cordoned,
        asleep: state.asleep,
        breaker: state.breaker.state(at),
        standing: state.standing,
        ejected: state.unhealthy ? "unhealthy" : state.outlier.reason(at),
        ejections: state.ejections,
        share: this.#standing.shareOf(at, state),
        indexBlocks: this.#options.index.size(state.slot),
        knowledge: this.#knowledge(state),
      };
    });
  }

  #knowledge({ slot }: EndpointState): Knowledge {
    return this.#reported?.knowledge(slot) ?? GUESSED["no-events"];
  }

  #capacityBlocks(endpoint: Endpoint): number {
    return Math.floor((endpoint.kvCapacityTokens ?? KV_CAPACITY_TOKENS_DEFAULT) / this.#blockTokens);
  }

  #reorder(): void {
    this.states = [...this.#byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
    this.ids = this.states.map((state) => state.id);
    this.#hits = new Int32Array(this.states.reduce((most, state) => Math.max(most, state.slot + 1), 0));
    this.#held = new Int32Array(this.#hits.length);
    this.ineligible = new Uint8Array(this.states.length);
  }
}

const NONE_TRIED: readonly EndpointId[] = [];

/**
 * Tokens that the engine will not compute. It recomputes at least one token, and so the whole last block of a prompt
 * that it holds entirely.
 */
function hitTokens(request: RouteRequest, hitBlocks: number): number {
  const { blockTokens } = request.blocks;
  const blocks = hitBlocks * blockTokens >= request.promptTokens ? hitBlocks - 1 : hitBlocks;
  return Math.max(0, Math.floor(blocks * blockTokens));
}
