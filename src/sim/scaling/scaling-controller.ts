import { roomTokens } from "#engine/config.ts";
import { assert } from "#core/base/assert.ts";
import { Autoscaler } from "#core/autoscale/autoscaler.ts";
import type { ScaleSignals } from "#core/autoscale/scale-signals.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineFleet, EngineSpec } from "../fleet/engine-fleet.ts";
import type { FaultDesk } from "../fault/fault-desk.ts";
import type { FleetChanges } from "./fleet-changes.ts";
import type { Outcomes } from "../result/outcomes.ts";
import type { SimulationEvent } from "../path/simulation-event.ts";
import type { ScaleAction, ScalingFigures, ScalingOptions } from "../setting/scaling-options.ts";

/** The simulation as an autoscaler and its actuators see it. */
export interface ScalingHost {
  readonly clock: Micros;
  readonly fleet: EngineFleet;
  readonly outcomes: Outcomes;
  later(at: Micros, event: SimulationEvent): void;
  readonly changes: Pick<FleetChanges, "take">;
  /** Where requests may have to leave a replica. */
  readonly desk: Pick<FaultDesk, "redirect"> | undefined;
}

interface Replica {
  readonly orderedAt: Micros;
  /** Of the engine; -1 while it is coming. */
  number: number;
  /** No requests any more from then on; NaN before. */
  leftAt: Micros;
}

/** Changes of the number that are kept for the report. */
const ACTIONS_MAX = 10_000;

/**
 * The autoscaler of a simulated deployment: looks at the engines now and then, orders replicas that come after
 * provisioning and warm-up, and takes others away by the drain policy. A replica that is still coming is the first to be
 * given up; of those that are ready the one with the least in flight goes, the youngest of equals.
 */
export class ScalingController {
  readonly #options: ScalingOptions;
  readonly #host: ScalingHost;
  readonly #autoscaler: Autoscaler;
  readonly #spec: EngineSpec;
  readonly #replicas: Replica[] = [];
  readonly #actions: ScaleAction[] = [];
  #have = 0;
  #replicasMax = 0;
  #named = 0;
  /** Rows of the outcomes that were there at the last look. */
  #seen = 0;
  #lookedAt: Micros = 0;

  /** `initial` replicas are there at 0 and like the first one; later ones are too. */
  constructor(options: ScalingOptions, initial: readonly EngineSpec[], host: ScalingHost) {
    const [first] = initial;
    assert(first !== undefined, "a deployment that scales begins with a replica");
    this.#options = options;
    this.#host = host;
    this.#autoscaler = new Autoscaler(options.autoscaler);
    this.#spec = first;
    for (let number = 0; number < initial.length; number++) this.#replicas.push({ orderedAt: 0, number, leftAt: NaN });
    this.#setHave(initial.length);
    host.later(options.everyMicros, { kind: "scale-check", take: (at) => this.#look(at) });
  }

  #look(at: Micros): void {
    const signals = this.#signals(at);
    const { everyMicros, metricsDelayMicros } = this.#options;
    if (metricsDelayMicros === 0) this.#decide(signals);
    else {
      const take = (): void => this.#decide(signals);
      this.#host.later(at + metricsDelayMicros, { kind: "scale-check", take });
    }
    this.#host.later(at + everyMicros, { kind: "scale-check", take: (next) => this.#look(next) });
  }

  #decide(seen: ScaleSignals): void {
    const at = this.#host.clock;
    const from = this.#have;
    const { action, replicas, reason } = this.#autoscaler.decide({ ...seen, at }, from);
    if (action === "none") return;
    if (this.#actions.length < ACTIONS_MAX) this.#actions.push({ at, action, from, to: replicas, reason });
    if (action === "up") for (let i = from; i < replicas; i++) this.#order(at);
    else for (let i = from; i > replicas; i--) this.#takeAway(at);
    this.#setHave(replicas);
  }

  #setHave(replicas: number): void {
    this.#have = replicas;
    this.#replicasMax = Math.max(this.#replicasMax, replicas);
  }

  #order(at: Micros): void {
    const { provisioningMicros, warmupMicros } = this.#options;
    const replica = { orderedAt: at, number: -1, leftAt: NaN };
    this.#replicas.push(replica);
    const take = (readyAt: Micros): void => this.#ready(readyAt, replica);
    this.#host.later(at + provisioningMicros + warmupMicros, { kind: "replica-ready", take });
  }

  #ready(at: Micros, replica: Replica): void {
    if (!Number.isNaN(replica.leftAt)) return;
    const { fleet } = this.#host;
    replica.number = fleet.size;
    const endpoint = { ...this.#spec.endpoint, id: `scaled-${++this.#named}` };
    this.#host.changes.take({ kind: "endpoint-joined", at, endpoint });
  }

  #takeAway(at: Micros): void {
    const replica = this.#leastNeeded(at);
    replica.leftAt = at;
    if (replica.number < 0) return;
    const endpoint = this.#host.fleet.specs[replica.number]!.endpoint.id;
    const { drain } = this.#options;
    const lost = drain === "immediate" ? { lost: true as const } : {};
    this.#host.changes.take({ kind: "endpoint-left", at, endpoint, ...lost });
    if (drain === "redirect") this.#host.desk?.redirect(replica.number);
  }

  #leastNeeded(at: Micros): Replica {
    let found: Replica | undefined;
    let least = Infinity;
    for (const replica of this.#here()) {
      const load = replica.number < 0 ? -1 : this.#inFlight(at, replica.number);
      if (load > least) continue;
      [found, least] = [replica, load];
    }
    assert(found !== undefined, "there is a replica to take away");
    return found;
  }

  #inFlight(at: Micros, number: number): number {
    const { waiting, running } = this.#host.fleet.gauges(at, number);
    return waiting + running;
  }

  #here(): Replica[] {
    return this.#replicas.filter(({ leftAt }) => Number.isNaN(leftAt));
  }

  #signals(at: Micros): ScaleSignals {
    const { fleet } = this.#host;
    const gauges = this.#here().flatMap(({ number }) => (number < 0 ? [] : [fleet.gauges(at, number)]));
    const { config } = this.#spec;
    const { sequencesMax, dataParallel } = config;
    const sum = (of: (one: (typeof gauges)[number]) => number): number =>
      gauges.reduce((total, one) => total + of(one), 0);
    return {
      at,
      ready: gauges.length,
      waiting: sum(({ waiting }) => waiting),
      running: sum(({ running }) => running),
      runningMax: gauges.length * sequencesMax * dataParallel,
      kvUtilization: gauges.length === 0 ? 0 : sum(({ kvUtilization }) => kvUtilization) / gauges.length,
      kvTokens: dataParallel * roomTokens(config),
      ...this.#arrivals(at),
      requestsPerSecondAhead: this.#ahead(at),
    };
  }

  /** Since the last look. */
  #arrivals(at: Micros): Pick<ScaleSignals, "promptTokensMean" | "requestsPerSecond"> {
    const { outcomes } = this.#host;
    const count = outcomes.length - this.#seen;
    let tokens = 0;
    for (let row = this.#seen; row < outcomes.length; row++) tokens += outcomes.promptTokens[row]!;
    const seconds = (at - this.#lookedAt) / MICROS_PER_SECOND;
    this.#seen = outcomes.length;
    this.#lookedAt = at;
    return { promptTokensMean: count === 0 ? 0 : tokens / count, requestsPerSecond: count / seconds };
  }

  /** Within the time that a new replica takes, and one look more. */
  #ahead(at: Micros): number | undefined {
    const { arrivals, provisioningMicros, warmupMicros, everyMicros, metricsDelayMicros } = this.#options;
    if (arrivals === undefined) return undefined;
    const until = at + provisioningMicros + warmupMicros + everyMicros + metricsDelayMicros;
    const [from, to] = [at, until].map((time) => Math.floor(time / arrivals.windowMicros));
    return arrivals.perSecond.slice(from, to! + 1).reduce((most, one) => Math.max(most, one), 0);
  }

  /** At the end of the run: a replica that was taken away is paid for until its last request is over. */
  figures(endedAt: Micros): ScalingFigures {
    const lastEnds = this.#lastEnds();
    let micros = 0;
    for (const { orderedAt, number, leftAt } of this.#replicas) {
      const gone = Number.isNaN(leftAt) ? endedAt : Math.max(leftAt, number < 0 ? leftAt : (lastEnds[number] ?? 0));
      micros += Math.max(0, Math.min(endedAt, gone) - orderedAt);
    }
    const { ups, downs, oscillations } = this.#autoscaler;
    return {
      ups,
      downs,
      oscillations,
      replicaSeconds: micros / MICROS_PER_SECOND,
      replicasMean: endedAt === 0 ? this.#have : micros / endedAt,
      replicasMax: this.#replicasMax,
      actions: this.#actions,
    };
  }

  #lastEnds(): number[] {
    const { outcomes, fleet } = this.#host;
    const last = Array.from({ length: fleet.size }, () => 0);
    for (let row = 0; row < outcomes.length; row++) {
      const number = outcomes.endpoint[row]!;
      const end = outcomes.arrivalAt[row]! + outcomes.e2e[row]!;
      if (number >= 0 && end > last[number]!) last[number] = end;
    }
    return last;
  }

  /** Verifies that the number of replicas lies within its bounds. */
  verify(): void {
    const { min, max } = this.#options.autoscaler;
    const here = this.#here().length;
    assert(here === this.#have, "every replica that is wanted is ready or coming");
    assert(here >= min && here <= max, "the number of replicas lies within its bounds");
  }
}
