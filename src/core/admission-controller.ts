import type { RejectReason } from "./input/decision.ts";
import { newTokens } from "./endpoint/gauge.ts";
import type { EndpointState } from "./endpoint/endpoint-state.ts";
import type { Fleet } from "./fleet/fleet.ts";
import type { NobodyReason } from "./fleet/fleet-standing.ts";
import type { RequestFinished } from "./input/input.ts";
import type { Pending } from "./pending.ts";
import { createPriority } from "./priority/create.ts";
import type { PriorityPolicy } from "./priority/priority.ts";
import type { RouteRequest } from "./request/request.ts";
import { ServiceCounters } from "./tenant/service-counters.ts";
import type { Micros } from "./base/units.ts";
import type { AdmissionPolicy } from "./admission/admission.ts";
import { ADMIT_ALL, type AdmissionSpec } from "./admission/admission-spec.ts";
import { createAdmission } from "./admission/create.ts";
import type { Held, RefusalReason } from "./admission/held.ts";
import { ExpectedOutput } from "./admission/expected-output.ts";
import { ModelCap } from "./admission/model-cap.ts";
import type { AdmissionShared } from "./admission/let-in-elsewhere.ts";
import type { Permit } from "./admission/permit.ts";
import { RequestQueue } from "./admission/request-queue.ts";
import { fullness } from "./admission/saturation.ts";
import type { WaitReason } from "./admission/waiting-request.ts";

/**
 * Who may be routed now, who waits, and who is refused: all of it from the router's own inputs, so that both hosts and
 * every replay come to the same. A request is let in once, where it is first placed, and holds what it took until its
 * end, whatever becomes of its attempts.
 */
export class AdmissionController {
  readonly #fleet: Fleet;
  #spec: AdmissionSpec = ADMIT_ALL;
  /** Somebody may be kept out, or has a priority. Where it is not, only who waits from before is of interest. */
  isActive = false;
  #limits: ReadonlyMap<string, AdmissionPolicy> = new Map();
  #modelCap: ModelCap | undefined;
  #priority: PriorityPolicy | undefined;
  #counters: ServiceCounters | undefined;
  #queue: RequestQueue | undefined;
  readonly #output = new ExpectedOutput();

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
  }

  /** It counts what requests are served. */
  get counts(): boolean {
    return this.#counters !== undefined;
  }

  /** Requests that wait. */
  get waiting(): number {
    return this.#queue?.size ?? 0;
  }

  /** The same by class. */
  waitingByBand(): ReadonlyMap<number, number> {
    return this.#queue?.sizes() ?? new Map<number, number>();
  }

  /** By name, as they count. */
  get limits(): ReadonlyMap<string, AdmissionPolicy> {
    return this.#limits;
  }

  get modelCap(): ModelCap | undefined {
    return this.#modelCap;
  }

  /** When `due` is to be asked again though nothing came; Infinity for never. */
  get nextAt(): Micros {
    return this.#queue?.nextAt ?? Infinity;
  }

  /**
   * Another spec from now on; undefined lets all in. What was counted so far counts on, requests in flight count in what
   * is new, and what waits goes on waiting, or where there is no queue any more, is released in turn.
   */
  configure(spec: AdmissionSpec | undefined, at: Micros, inFlight: Iterable<Pending>): void {
    this.isActive = spec !== undefined;
    this.#spec = spec ?? ADMIT_ALL;
    const { limits, modelCap, priority, queue } = this.#spec;
    this.#limits = new Map(
      Object.entries(limits).map(([name, limit]) => [name, createAdmission(limit, this.#limits.get(name))]),
    );
    this.#modelCap = modelCap && new ModelCap(modelCap, this.#modelCap);
    this.#priority = priority && createPriority(priority);
    if (queue !== undefined) {
      this.#counters ??= new ServiceCounters(queue);
      this.#counters.configure(queue);
      this.#queue ??= new RequestQueue(queue, this.#counters);
      this.#queue.configure(queue);
    }
    for (const pending of inFlight) if (pending.state !== undefined) this.#catchUp(at, pending, pending.state);
  }

  /** As it is routed: with the priority that the policy gives it. */
  stamped(request: RouteRequest, at: Micros): RouteRequest {
    return this.#priority === undefined ? request : { ...request, priority: this.#priority.priorityOf(request, at) };
  }

  /** What is to be written into the request as vLLM's priority; undefined leaves it as it is. */
  priorityOf({ priority }: RouteRequest): number | undefined {
    return this.#priority === undefined ? undefined : priority;
  }

  /** Before endpoints are scored: why the request is not to go on, or undefined. `refusal` is why no endpoint may serve. */
  hold(at: Micros, pending: Pending, refusal: NobodyReason | undefined): Held | undefined {
    const { request, waiting } = pending;
    if (waiting?.evicted === true) return this.#refused(at, pending, "queue-evicted");
    if (waiting !== undefined && at >= waiting.expiresAt) return this.#refused(at, pending, "queue-timeout");
    if (this.#isIn(pending)) return undefined;
    const limited = this.#limited(at, pending);
    if (limited !== undefined) return limited;
    if (refusal !== undefined) {
      return this.#awaitsEndpoint(refusal, request) ? this.#wait(at, pending, "no-endpoint") : undefined;
    }
    const { queue, shedAt } = this.#spec;
    if (queue === undefined && shedAt === undefined) return undefined;
    const band = this.#bandOf(request);
    const saturation = this.#saturation(at, request);
    if (shedAt !== undefined && band < 0 && waiting === undefined && saturation >= shedAt) {
      return this.#refused(at, pending, "shed");
    }
    if (queue === undefined) return undefined;
    const heldUp = waiting === undefined && this.#queue?.holdsUp(request.model, band) === true;
    return saturation >= queue.waitAt || heldUp ? this.#wait(at, pending, "saturated") : undefined;
  }

  /** No endpoint was found; it waits where those that may serve it are all too busy. */
  unplaced(at: Micros, pending: Pending, reason: RejectReason): Held | undefined {
    if (reason !== "saturated") {
      this.#leave(at, pending, false);
      return undefined;
    }
    if (this.#isIn(pending)) return undefined;
    return this.#wait(at, pending, "saturated");
  }

  /** An endpoint was chosen: takes what the request holds from now on, or is why it is refused. */
  place(at: Micros, pending: Pending, state: EndpointState): Held | undefined {
    if (this.#isIn(pending)) {
      this.#leave(at, pending, true);
      return undefined;
    }
    const { request } = pending;
    const model = this.#modelCap?.permitFor(request, state.endpoint.labels);
    if (model !== undefined && this.#modelCap?.allows(model) === false) return this.#refused(at, pending, "model-cap");
    this.#leave(at, pending, true);
    if (model !== undefined) this.#modelCap?.take(model);
    for (const limit of this.#limits.values()) limit.admitted(request, at);
    const expected = this.#output.tokens * request.sequences;
    pending.permit = { limits: this.#limits, model, outputTokens: 0, outputTokensCharged: expected };
    this.#counters?.served(request.tenant, newTokens(state, request.promptTokens), expected);
    return undefined;
  }

  /** What requests count in that another router let in, whatever the limits say. */
  get shared(): AdmissionShared {
    return { limits: this.#limits, modelCap: this.#modelCap, counters: () => this.#counters };
  }

  /** It has so many output tokens so far. */
  progress({ permit, request }: Pending, outputTokens: number): void {
    if (permit === undefined || outputTokens <= permit.outputTokens) return;
    permit.outputTokens = outputTokens;
    if (outputTokens > permit.outputTokensCharged) this.#charge(request.tenant, permit);
  }

  /** The end of a request, once and on every path. */
  ended(pending: Pending, { at, outcome, promptTokens, outputTokens }: RequestFinished): void {
    this.#leave(at, pending, false);
    const { permit, request } = pending;
    if (permit === undefined) return;
    this.progress(pending, outputTokens ?? 0);
    pending.permit = undefined;
    this.#charge(request.tenant, permit);
    if (outcome === "ok" && outputTokens !== undefined) this.#output.ended(outputTokens, request.sequences);
    // Of an answer that its client broke off, nobody knows how much the engine made: it counts as taken.
    const unknown = outcome === "aborted" ? undefined : permit.outputTokens;
    const used = { promptTokens: promptTokens ?? request.promptTokens, outputTokens: outputTokens ?? unknown };
    for (const limit of permit.limits.values()) limit.ended(request, at, used);
    if (permit.model !== undefined) this.#modelCap?.release(permit.model);
  }

  /** For what was made; what was charged beyond that is given back. */
  #charge(tenant: string, permit: Permit): void {
    this.#counters?.served(tenant, 0, permit.outputTokens - permit.outputTokensCharged);
    permit.outputTokensCharged = permit.outputTokens;
  }

  /** The request whose turn it is, to go on or to be refused. Asking changes no decision. */
  due(at: Micros): string | undefined {
    const room = new Map<string, boolean>();
    const waiting = this.#queue?.due(at, ({ request }) => {
      const { model, subset } = request;
      const hasRoom = (subset === undefined ? room.get(model) : undefined) ?? this.#hasRoom(at, request);
      if (subset === undefined) room.set(model, hasRoom);
      if (!hasRoom) return "pool-full";
      const limited = this.#checked(at, request);
      return limited?.action === "delay" ? limited.micros : "yes";
    });
    return waiting?.request.id;
  }

  /** Nobody is kept out, or it was let in before. */
  #isIn({ permit, attempts }: Pending): boolean {
    return !this.isActive || permit !== undefined || attempts > 0;
  }

  /** An endpoint may still come for it, or wake up; of a model that nobody serves only where the queue is to wait for one. */
  #awaitsEndpoint(refusal: NobodyReason, { model }: RouteRequest): boolean {
    if (refusal === "no-endpoint" || refusal === "asleep") return true;
    return this.#spec.queue?.emptyPool.models.includes(model) === true;
  }

  #hasRoom(at: Micros, request: RouteRequest): boolean {
    if (this.#fleet.markIneligible(at, request, NONE_TRIED) !== undefined) return false;
    return this.#saturation(at, request) < (this.#spec.queue?.waitAt ?? Infinity);
  }

  /** 0 where no endpoint that is well may serve it: the router may still try one that is not. */
  #saturation(at: Micros, request: RouteRequest): number {
    const { saturation } = this.#spec;
    return this.#fleet.meanOverTakers(at, request, (state) => Math.min(1, fullness(state, saturation))) ?? 0;
  }

  #bandOf({ sloClass }: RouteRequest): number {
    const { scores, defaultScore } = this.#spec.classes;
    return Object.hasOwn(scores, sloClass) ? scores[sloClass]! : defaultScore;
  }

  #checked(at: Micros, request: RouteRequest) {
    for (const [limit, policy] of this.#limits) {
      const verdict = policy.check(request, at);
      if (verdict.action !== "admit") return { limit, ...verdict };
    }
    return undefined;
  }

  #limited(at: Micros, pending: Pending): Held | undefined {
    const verdict = this.#checked(at, pending.request);
    if (verdict === undefined) return undefined;
    const { limit, micros } = verdict;
    const reason = verdict.reason as RefusalReason & WaitReason;
    if (verdict.action === "delay") {
      const waits = this.#wait(at, pending, reason);
      if (waits !== undefined) return { ...waits, limit };
    }
    this.#leave(at, pending, false);
    return { kind: "rejected", reason, limit, ...(micros !== undefined && { retryMicros: micros }) };
  }

  #refused(at: Micros, pending: Pending, reason: RefusalReason): Held {
    this.#leave(at, pending, false);
    return { kind: "rejected", reason };
  }

  /** Undefined where there is no queue, or none for requests without an endpoint. */
  #wait(at: Micros, pending: Pending, reason: WaitReason): Held | undefined {
    const { queue } = this.#spec;
    if (queue === undefined || this.#queue === undefined) return undefined;
    const { request, waiting } = pending;
    if (waiting !== undefined) {
      this.#queue.waitsFor(waiting, reason);
      return { kind: "queued", reason };
    }
    pending.waiting = this.#queue.enter(at, request, this.#bandOf(request), reason);
    if (pending.waiting !== undefined) return { kind: "queued", reason };
    return reason === "no-endpoint" ? undefined : { kind: "rejected", reason: "queue-full" };
  }

  #leave(at: Micros, pending: Pending, goesOn: boolean): void {
    const { waiting } = pending;
    if (waiting === undefined) return;
    pending.waiting = undefined;
    this.#queue?.remove(at, waiting, goesOn);
  }

  /** What a request in flight holds of policies that are new, and no more of those that are gone. */
  #catchUp(at: Micros, pending: Pending, { endpoint }: EndpointState): void {
    const { permit, request } = pending;
    const limits = new Map<string, AdmissionPolicy>();
    for (const [name, limit] of this.#limits) {
      const had = permit?.limits.has(name) === true && limit.continues;
      if (!had && limit.holds) limit.admitted(request, at);
      if (had || limit.holds) limits.set(name, limit);
    }
    const cap = this.#modelCap;
    const held = permit?.model !== undefined && cap?.continues === true ? permit.model : undefined;
    const model = held ?? cap?.permitFor(request, endpoint.labels);
    if (held === undefined && model !== undefined) cap?.take(model);
    const { outputTokens = 0, outputTokensCharged = 0 } = permit ?? {};
    pending.permit = { limits, model, outputTokens, outputTokensCharged };
  }
}

const NONE_TRIED: readonly string[] = [];
