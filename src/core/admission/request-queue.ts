import { Heap } from "../base/heap.ts";
import type { RouteRequest } from "../request/request.ts";
import type { ServiceCounters } from "../tenant/service-counters.ts";
import type { Micros } from "../base/units.ts";
import type { QueueSpec } from "./admission-spec.ts";
import { DrainRates } from "./drain-rates.ts";
import { TenantLines } from "./tenant-lines.ts";
import type { WaitReason, WaitingRequest } from "./waiting-request.ts";

/** A pool may get room by time alone: a breaker's pause ends, a signal becomes too old to count. */
const LOOK_MICROS = 100_000;
/** Heads of lines that are looked at for one turn; more are left for the next one. */
const HEADS_TRIED_MAX = 32;

/**
 * Whether a request that waits may go on now: yes, not before some microseconds have passed, or not with its whole
 * pool.
 */
export type MayGoOn = (waiting: WaitingRequest) => "yes" | "pool-full" | Micros;

/**
 * Requests that wait, bounded in number and in prompt tokens: classes strictly in order, within a class and model the
 * tenants by what they were served, each in order of arrival. Where it is full, the newest request of the longest line
 * makes room: of a lower class, or of a tenant with more than the one who comes.
 *
 * What waits for an endpoint to be started has a budget of its own. `due` only looks; the queue changes with the inputs
 * of the router alone.
 */
export class RequestQueue {
  #spec: QueueSpec;
  readonly #counters: ServiceCounters;
  /** By class, then by model; classes in order, the greatest first. */
  readonly #bands = new Map<number, Map<string, TenantLines>>();
  #order: number[] = [];
  readonly #expiries = new Heap<WaitingRequest>((a, b) =>
    a.expiresAt === b.expiresAt ? a.number < b.number : a.expiresAt < b.expiresAt,
  );
  readonly #evicted: WaitingRequest[] = [];
  readonly #rates = new DrainRates();
  #number = 0;
  #promptTokens = 0;
  #withoutEndpoint = 0;
  /** Who went on last. */
  #lastTenant: string | undefined;
  /** When the soonest of the heads may go on that a limit delays or whose pool is full, as of the last look. */
  #delayedUntil: Micros = Infinity;

  constructor(spec: QueueSpec, counters: ServiceCounters) {
    this.#spec = spec;
    this.#counters = counters;
  }

  configure(spec: QueueSpec): void {
    this.#spec = spec;
  }

  /** Requests that wait, those that have to leave included. */
  get size(): number {
    return this.#expiries.size + this.#evicted.length;
  }

  get promptTokens(): number {
    return this.#promptTokens;
  }

  /** Requests that wait, by class. */
  sizes(): Map<number, number> {
    const sizes = new Map<number, number>();
    for (const [band, models] of this.#bands) {
      sizes.set(
        band,
        models.values().reduce((sum, lines) => sum + lines.size, 0),
      );
    }
    return sizes;
  }

  /** When `due` is to be asked again though nothing came; Infinity for never. */
  get nextAt(): Micros {
    if (this.size === 0) return Infinity;
    return Math.min(this.#expiries.first?.expiresAt ?? Infinity, this.#delayedUntil);
  }

  /** Others for the model, as urgent or more so, wait for its pool. */
  holdsUp(model: string, band: number): boolean {
    for (const waiting of this.#order) {
      if (waiting < band) return false;
      const lines = this.#bands.get(waiting)!.get(model);
      if (lines === undefined) continue;
      for (const tenant of lines.tenants()) if (isPoolReason(lines.first(tenant).reason)) return true;
    }
    return false;
  }

  /** Takes a request in, for which another may have to leave; undefined where there is no room. */
  enter(at: Micros, request: RouteRequest, band: number, reason: WaitReason): WaitingRequest | undefined {
    const { requestsMax, promptTokensMax, ttlMicros, emptyPool } = this.#spec;
    const { tenant, promptTokens } = request;
    const isEmpty = reason === "no-endpoint";
    if (isEmpty) {
      if (this.#withoutEndpoint >= emptyPool.requestsMax) return undefined;
    } else if (promptTokens > promptTokensMax) return undefined;
    else if (this.#waitsTooLong(at, request, band)) return undefined;
    else {
      const fits = () =>
        this.#expiries.size - this.#withoutEndpoint < requestsMax &&
        this.#promptTokens + promptTokens <= promptTokensMax;
      while (!fits()) {
        const victim = this.#victim(tenant, band);
        if (victim === undefined) return undefined;
        this.#takeOut(victim);
        victim.evicted = true;
        this.#evicted.push(victim);
      }
    }
    const expiresAt = at + (isEmpty ? emptyPool.ttlMicros : ttlMicros);
    const waiting: WaitingRequest = {
      request,
      band,
      number: this.#number++,
      since: at,
      expiresAt,
      reason,
      evicted: false,
    };
    this.#lift(tenant);
    this.#linesOf(band, request.model).add(waiting);
    this.#expiries.push(waiting);
    if (isEmpty) this.#withoutEndpoint++;
    else this.#promptTokens += promptTokens;
    return waiting;
  }

  /** It goes on, is refused, or its client left. */
  remove(at: Micros, waiting: WaitingRequest, goesOn: boolean): void {
    const { tenant, model } = waiting.request;
    if (goesOn) this.#lastTenant = tenant;
    if (waiting.evicted) this.#evicted.splice(this.#evicted.indexOf(waiting), 1);
    else this.#takeOut(waiting);
    this.#rates.removed(at, model, goesOn, this.#waitingFor(model, -Infinity));
  }

  /** Whether it would wait longer than one may, by the rate at which requests for its model went on of late. */
  #waitsTooLong(at: Micros, { model, tenant }: RouteRequest, band: number): boolean {
    const { expectedMicrosMax, fairness } = this.#spec;
    const gapMicros = expectedMicrosMax === undefined ? undefined : this.#rates.gapMicros(at, model);
    if (expectedMicrosMax === undefined || gapMicros === undefined) return false;
    const lines = this.#bands.get(band)?.get(model);
    const all = (lines?.size ?? 0) + 1;
    const turns = fairness === "first-come" ? all : Math.min(all, this.#turnsOf(tenant, lines));
    return (this.#waitingFor(model, band) + turns) * gapMicros > expectedMicrosMax;
  }

  /** So many go on until the tenant's next one does, while each tenant that waits has its share. */
  #turnsOf(tenant: string, lines: TenantLines | undefined): number {
    const share = this.#counters.shareOf(tenant);
    let others = 0;
    for (const other of lines?.tenants() ?? []) if (other !== tenant) others += this.#counters.shareOf(other);
    return (((lines?.lengthOf(tenant) ?? 0) + 1) * (others + share)) / share;
  }

  /** Requests for a model that wait in classes above one. */
  #waitingFor(model: string, above: number): number {
    let sum = 0;
    for (const band of this.#order) if (band > above) sum += this.#bands.get(band)!.get(model)?.size ?? 0;
    return sum;
  }

  /** It waits for something else than before. */
  waitsFor(waiting: WaitingRequest, reason: WaitReason): void {
    const [was, is] = [waiting.reason === "no-endpoint", reason === "no-endpoint"];
    waiting.reason = reason;
    if (was === is || waiting.evicted) return;
    this.#withoutEndpoint += is ? 1 : -1;
    this.#promptTokens += waiting.request.promptTokens * (is ? -1 : 1);
  }

  /** The request whose turn it is: to go on, or to be refused since its time is over or others need its room. */
  due(at: Micros, mayGoOn: MayGoOn): WaitingRequest | undefined {
    if (this.#evicted.length > 0) return this.#evicted[0];
    const { first } = this.#expiries;
    if (first !== undefined && first.expiresAt <= at) return first;
    this.#delayedUntil = Infinity;
    for (const band of this.#order) {
      for (const lines of this.#bands.get(band)!.values()) {
        const next = this.#turn(at, lines, mayGoOn);
        if (next !== undefined) return next;
      }
    }
    return undefined;
  }

  #turn(at: Micros, lines: TenantLines, mayGoOn: MayGoOn): WaitingRequest | undefined {
    const passed = new Set<string>();
    while (passed.size < Math.min(HEADS_TRIED_MAX, lines.size)) {
      const tenant = this.#least(lines, passed);
      if (tenant === undefined) return undefined;
      const head = lines.first(tenant);
      const verdict = mayGoOn(head);
      if (verdict === "yes") return head;
      if (verdict === "pool-full") {
        this.#delayedUntil = Math.min(this.#delayedUntil, at + LOOK_MICROS);
        return undefined;
      }
      this.#delayedUntil = Math.min(this.#delayedUntil, at + verdict);
      passed.add(tenant);
    }
    return undefined;
  }

  #least(lines: TenantLines, passed: ReadonlySet<string>): string | undefined {
    const byArrival = this.#spec.fairness === "first-come";
    let least: string | undefined;
    let leastValue = Infinity;
    let leastNumber = Infinity;
    for (const tenant of lines.tenants()) {
      if (passed.has(tenant)) continue;
      const { number } = lines.first(tenant);
      const value = byArrival ? number : this.#counters.of(tenant);
      if (value > leastValue || (value === leastValue && number > leastNumber)) continue;
      [least, leastValue, leastNumber] = [tenant, value, number];
    }
    return least;
  }

  /** Who leaves so that a request of that tenant and class may come. */
  #victim(tenant: string, band: number): WaitingRequest | undefined {
    for (const lowest of this.#order.toReversed()) {
      if (lowest > band) return undefined;
      let longest: WaitingRequest | undefined;
      let length = lowest < band ? 0 : (this.#lengthOf(tenant, band) + 1) / this.#counters.shareOf(tenant);
      for (const lines of this.#bands.get(lowest)!.values()) {
        for (const other of lines.tenants()) {
          const own = lines.lengthOf(other) / this.#counters.shareOf(other);
          if (own <= length || lines.last(other).reason === "no-endpoint") continue;
          [longest, length] = [lines.last(other), own];
        }
      }
      if (longest !== undefined) return longest;
    }
    return undefined;
  }

  #lengthOf(tenant: string, band: number): number {
    let length = 0;
    for (const lines of this.#bands.get(band)?.values() ?? []) length += lines.lengthOf(tenant);
    return length;
  }

  /** A tenant of which nothing waits has saved nothing up. */
  #lift(tenant: string): void {
    let least = Infinity;
    for (const models of this.#bands.values()) {
      for (const lines of models.values()) {
        for (const other of lines.tenants()) {
          if (other === tenant) return;
          least = Math.min(least, this.#counters.of(other));
        }
      }
    }
    if (least === Infinity) least = this.#lastTenant === undefined ? 0 : this.#counters.of(this.#lastTenant);
    this.#counters.lift(tenant, least);
  }

  #linesOf(band: number, model: string): TenantLines {
    let models = this.#bands.get(band);
    if (models === undefined) {
      models = new Map();
      this.#bands.set(band, models);
      this.#order = [...this.#bands.keys()].sort((a, b) => b - a);
    }
    let lines = models.get(model);
    if (lines === undefined) {
      lines = new TenantLines();
      models.set(model, lines);
    }
    return lines;
  }

  #takeOut(waiting: WaitingRequest): void {
    const { band, request, reason } = waiting;
    const models = this.#bands.get(band)!;
    const lines = models.get(request.model)!;
    lines.remove(waiting);
    this.#expiries.remove(waiting);
    if (reason === "no-endpoint") this.#withoutEndpoint--;
    else this.#promptTokens -= request.promptTokens;
    if (lines.size > 0) return;
    models.delete(request.model);
    if (models.size > 0) return;
    this.#bands.delete(band);
    this.#order = this.#order.filter((one) => one !== band);
  }
}

function isPoolReason(reason: WaitReason): boolean {
  return reason === "saturated" || reason === "no-endpoint";
}
