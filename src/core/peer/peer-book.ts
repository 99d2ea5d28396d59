import type { AdmissionPolicy } from "../admission/admission.ts";
import type { LetInElsewhere } from "../admission/let-in-elsewhere.ts";
import type { TakenOver } from "../admission/windows-elsewhere.ts";
import type { Decision } from "../input/decision.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import { Ledger } from "../endpoint/ledger.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { Input } from "../input/input.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";
import { seenTpotMicros } from "../latency/latency-model.ts";
import type { RouteRequest } from "../request/request.ts";
import type { Micros } from "../base/units.ts";
import { firstTokenInput, peerDecision, peerRequest, releasedInput } from "./as-own.ts";
import { newPeerCounts } from "./peer-counts.ts";
import { type Peer, type PeerRequest, newPeer } from "./peer.ts";
import { PeerWindows } from "./peer-windows.ts";
import { PeerPrefills } from "./peer-prefills.ts";
import type {
  PeerBreaker,
  PeerCharged,
  PeerHeld,
  PeerLeft,
  PeerNews,
  PeerPrefilled,
  PeerReleased,
  PeerReported,
  PeerUsed,
} from "../request/peer-news.ts";

/** Routers beside this one; what others report is ignored. */
export const PEERS_MAX = 256;
/** Requests in flight at one peer; what it charges beyond is ignored. */
const PEER_REQUESTS_MAX = 65_536;

/** The router that the news come to. */
export interface PeerHost {
  readonly fleet: Fleet;
  readonly index: PrefixIndex;
  /** The request with the session that the router's own would have. */
  named(request: RouteRequest): RouteRequest;
  /** It was let in by another router. */
  letIn(
    at: Micros,
    request: RouteRequest,
    state: EndpointState,
    newTokens: number,
    taken: TakenOver | undefined,
  ): LetInElsewhere;
  limits(): ReadonlyMap<string, AdmissionPolicy>;
  /** Another router let them in, and they are over. */
  used(at: Micros, used: PeerUsed): void;
  /** Shows it to the plugins, as if the router had decided itself. */
  observe(input: Input, decision: Decision | undefined, request: RouteRequest): void;
}

/**
 * What other routers of the same endpoints have in flight, and what they learned. Their charges count in the endpoints'
 * accounts beside the router's own, and the book knows whose each one is: when a peer leaves nothing of it is left.
 * Reports may be lost, come twice or out of order; after the next snapshot the charges are what the peer has.
 */
export class PeerBook {
  readonly counts = newPeerCounts();
  readonly #host: PeerHost;
  readonly #ledger = new Ledger();
  readonly #prefills: PeerPrefills;
  readonly #peers = new Map<string, Peer>();
  readonly windows = new PeerWindows(PEERS_MAX);
  /** While a snapshot is read that has windows. */
  #taken: TakenOver | undefined;

  constructor(host: PeerHost) {
    this.#host = host;
    this.#prefills = new PeerPrefills(host.fleet, host.index);
  }

  /** Peers that are known. */
  get peers(): readonly string[] {
    return [...this.#peers.keys()];
  }

  /** Requests that peers have charged to endpoints. */
  get openCharges(): number {
    return this.#ledger.open + this.#prefills.open;
  }

  /** Requests that one peer has in flight; 0 where it is not known. */
  requestsOf(peer: string): number {
    return this.#peers.get(peer)?.requests.size ?? 0;
  }

  /** Whether a snapshot of this peer would add anything: reports of it were missed, or it is not known. */
  lacksSnapshot(peer: string): boolean {
    return this.#peers.get(peer)?.incomplete ?? true;
  }

  accept(input: PeerReported | PeerLeft): void {
    if (input.kind === "peer-left") return this.#left(input);
    const peer = this.#reporting(input);
    if (peer === undefined) {
      this.counts.ignoredReports++;
      return;
    }
    this.#host.index.advance?.(input.at);
    this.#taken = this.windows.take(this.#host.limits(), input);
    if (input.snapshot === true) this.#reconcile(input.at, peer, input.news);
    else for (const news of input.news) this.#take(input.at, peer, news);
    this.#taken = undefined;
  }

  /** The peer whose report it is; undefined where the report is to be ignored. */
  #reporting({ at, peer: name, epoch, sequence, snapshot }: PeerReported): Peer | undefined {
    let peer = this.#peers.get(name);
    if (peer !== undefined && epoch > peer.epoch) {
      this.#left({ kind: "peer-left", at, peer: name });
      peer = undefined;
    }
    if (peer === undefined) {
      if (this.#peers.size === PEERS_MAX) return undefined;
      peer = newPeer(name, epoch, sequence > 1);
      this.#peers.set(name, peer);
    } else if (epoch < peer.epoch || sequence <= peer.sequence) {
      return undefined;
    } else if (sequence > peer.sequence + 1) {
      peer.incomplete = true;
      this.counts.missedReports++;
    }
    peer.sequence = sequence;
    if (snapshot === true) peer.incomplete = false;
    return peer;
  }

  #take(at: Micros, peer: Peer, news: PeerNews): void {
    switch (news.kind) {
      case "charged":
        return this.#charged(at, peer, news);
      case "held":
        return this.#held(at, news);
      case "breaker":
        return this.#breaker(at, peer, news);
      case "used":
        return this.#host.used(at, news);
      case "window":
        return undefined;
      case "first-token":
      case "prefilled":
      case "progress":
      case "failed":
      case "released": {
        const request = peer.requests.get(news.request);
        if (request === undefined) this.counts.strayNews++;
        else if (news.kind === "released") this.#released(at, peer, request, news);
        else if (request.state === undefined) this.counts.strayNews++;
        else if (news.kind === "progress") this.#ledger.progress(request.route.id, news.outputTokens);
        else if (news.kind === "prefilled") this.#prefilled(at, request, news);
        else if (news.kind === "failed") this.#release(at, request, !request.begun);
        else this.#firstToken(at, request, request.state, news.ttftMicros);
      }
    }
  }

  #charged(at: Micros, peer: Peer, news: PeerCharged): void {
    const state = this.#host.fleet.get(news.endpoint);
    const known = peer.requests.get(news.request);
    if (known?.state !== undefined) return;
    if (state === undefined || (known === undefined && peer.requests.size >= PEER_REQUESTS_MAX)) {
      this.counts.refusedCharges++;
      // Where the endpoint is not known yet, a later snapshot has the charge once more.
      if (state === undefined) peer.incomplete = true;
      return;
    }
    const route = known?.route ?? this.#host.named(peerRequest(peer.name, news));
    const request = Object.assign(known ?? this.#letIn(at, news, route, state), { state, chargedAt: at });
    peer.requests.set(news.request, request);
    this.#ledger.charge(route.id, state, news);
    this.#prefills.charge(request, news);
    state.peerRequestsInFlight += news.sequences;
    const { blocks, promptTokensExact } = news;
    request.insertion = blocks.length > 0 ? this.#host.index.insert(state.slot, blocks, promptTokensExact) : undefined;
    this.#host.observe({ kind: "request-arrived", at, request: route }, peerDecision(at, route.id, news), route);
    if (news.outputTokens !== undefined) this.#progressed(request, news.outputTokens);
  }

  #letIn(
    at: Micros,
    { request: number, newTokens }: PeerCharged,
    route: RouteRequest,
    state: EndpointState,
  ): PeerRequest {
    const left = this.#host.letIn(at, route, state, newTokens, this.#taken);
    return { number, route, left, state, insertion: undefined, prefill: undefined, begun: false, chargedAt: at };
  }

  #progressed(request: PeerRequest, outputTokens: number): void {
    request.begun = true;
    this.#ledger.firstToken(request.route.id);
    this.#ledger.progress(request.route.id, outputTokens);
  }

  #prefilled(at: Micros, request: PeerRequest, { prefillMicros }: PeerPrefilled): void {
    request.prefill?.state.firstToken(at, prefillMicros);
    this.#prefills.release(at, request, false);
  }

  #firstToken(at: Micros, request: PeerRequest, state: EndpointState, ttftMicros: Micros): void {
    if (request.begun) return;
    request.begun = true;
    this.#prefills.release(at, request, false);
    state.firstToken(at, ttftMicros);
    this.#ledger.firstToken(request.route.id);
    if (request.insertion !== undefined) this.#host.index.computed?.(request.insertion, at);
    this.#host.observe(firstTokenInput(request, ttftMicros), undefined, request.route);
  }

  #released(at: Micros, peer: Peer, request: PeerRequest, news: PeerReleased): void {
    const { outcome, decodeMicros, outputTokens } = news;
    const firstTokenAt = decodeMicros === undefined ? undefined : at - decodeMicros;
    const tpotMicros = seenTpotMicros(firstTokenAt, at, outputTokens, request.route.sequences);
    peer.requests.delete(request.number);
    request.state?.peerEnded(at, outcome, { firstTokenAt, tpotMicros });
    this.#release(at, request, outcome !== "ok" && !request.begun);
    request.left(at, { promptTokens: news.promptTokens ?? request.route.promptTokens, outputTokens });
    this.#host.observe(releasedInput(at, request.route.id, news), undefined, request.route);
  }

  #release(at: Micros, request: PeerRequest, withdraw: boolean): void {
    const { state, insertion, route } = request;
    if (state === undefined) return;
    this.#ledger.release(route.id);
    this.#prefills.release(at, request, withdraw);
    state.peerRequestsInFlight -= route.sequences;
    if (insertion !== undefined) {
      if (withdraw) this.#host.index.withdraw(insertion);
      else this.#host.index.computed?.(insertion, at);
    }
    request.state = undefined;
    request.insertion = undefined;
    request.begun = false;
  }

  /** What is in flight there is exactly this. What had been charged before is not learned a second time. */
  #reconcile(at: Micros, peer: Peer, news: readonly PeerNews[]): void {
    const there = new Map<number, PeerCharged>();
    for (const one of news) if (one.kind === "charged") there.set(one.request, one);
    for (const request of peer.requests.values()) {
      if (there.get(request.number)?.endpoint !== request.state?.id) this.#forget(at, peer, request);
    }
    for (const one of news) {
      const request = one.kind === "charged" ? peer.requests.get(one.request) : undefined;
      if (request === undefined || one.kind !== "charged") this.#take(at, peer, one);
      else if (one.outputTokens !== undefined) this.#progressed(request, one.outputTokens);
    }
  }

  #held(at: Micros, { endpoint, session, blocks }: PeerHeld): void {
    const state = this.#host.fleet.get(endpoint);
    if (state === undefined) return;
    if (blocks.length > 0) this.#host.index.insert(state.slot, blocks);
    if (session === undefined) return;
    const sent = { endpoint, session, blocks, request: 0, attempt: 1, profile: "", reason: "", model: "" };
    const news = {
      kind: "charged",
      ...sent,
      tenant: "",
      sequences: 1,
      promptTokens: 0,
      promptTokensExact: false,
      newTokens: 0,
    } as const;
    const route = this.#host.named(peerRequest("", news));
    this.#host.observe({ kind: "request-arrived", at, request: route }, peerDecision(at, route.id, news), route);
  }

  /** A peer for which most endpoints fail is itself what fails. */
  #breaker(at: Micros, peer: Peer, { endpoint, state: verdict, pauseMicros }: PeerBreaker): void {
    const { fleet } = this.#host;
    const state = fleet.get(endpoint);
    if (verdict === "closed") {
      peer.suspects.delete(endpoint);
      state?.breaker.trusted();
    } else if (state !== undefined) {
      peer.suspects.add(endpoint);
      for (const id of peer.suspects) if (fleet.get(id) === undefined) peer.suspects.delete(id);
      if (2 * peer.suspects.size > fleet.states.length) this.counts.doubtedBreakers++;
      else state.breaker.suspected(at, pauseMicros);
    }
  }

  #left({ at, peer: name }: PeerLeft): void {
    const peer = this.#peers.get(name);
    if (peer === undefined) return;
    this.#peers.delete(name);
    for (const request of peer.requests.values()) this.#forget(at, peer, request);
    for (const endpoint of peer.suspects) this.#host.fleet.get(endpoint)?.breaker.trusted();
  }

  /** It is over, nobody knows how. Its blocks stay: the endpoint most likely has them. */
  #forget(at: Micros, peer: Peer, request: PeerRequest): void {
    peer.requests.delete(request.number);
    this.#release(at, request, false);
    request.left(at, { promptTokens: request.route.promptTokens, outputTokens: undefined });
    this.#host.observe(releasedInput(at, request.route.id), undefined, request.route);
  }
}
