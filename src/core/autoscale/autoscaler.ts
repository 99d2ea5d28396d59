import { assert } from "../base/assert.ts";
import type { Micros } from "../base/units.ts";
import { desiredReplicas, type ScalePolicySpec } from "./scale-policy.ts";
import type { ScaleSignals } from "./scale-signals.ts";

export interface AutoscalerOptions {
  readonly policy: ScalePolicySpec;
  /** Replicas at least and at most; at least 1. */
  readonly min: number;
  readonly max: number;
  /** After any change of the number, no further one for so long. */
  readonly cooldownMicros: Micros;
  /** A smaller number is taken only when nothing larger was wanted for so long. */
  readonly downStabilizationMicros: Micros;
  /** Replicas that one decision adds or takes away at most. */
  readonly stepMax: number;
}

export interface ScaleDecision {
  readonly action: "none" | "up" | "down";
  /** Replicas from now on, those that are coming among them. */
  readonly replicas: number;
  readonly reason: string;
}

interface Wish {
  readonly at: Micros;
  readonly replicas: number;
}

/**
 * How many replicas a deployment should have: a policy's wish within bounds, cooldown and stabilization. Pure; the same
 * class decides in a simulation and advises a running fleet.
 */
export class Autoscaler {
  readonly #options: AutoscalerOptions;
  /** Wishes of the stabilization window, falling in number: each is the largest since the one before it. */
  #wishes: Wish[] = [];
  #last: { readonly at: Micros; readonly action: "up" | "down" } | undefined;
  ups = 0;
  downs = 0;
  /** Changes against the direction of the one before, within the longer of cooldown and stabilization after it. */
  oscillations = 0;

  /** Throws RangeError for bounds that hold no number. */
  constructor(options: AutoscalerOptions) {
    const { min, max, stepMax } = options;
    if (!(min >= 1 && max >= min)) throw new RangeError(`expected 1 <= min <= max, got ${min} and ${max}`);
    if (!(stepMax >= 1)) throw new RangeError(`expected a step of at least 1, got ${stepMax}`);
    this.#options = options;
  }

  /** `have` replicas are ready or coming. */
  decide(signals: ScaleSignals, have: number): ScaleDecision {
    const { policy, min, max, cooldownMicros, stepMax } = this.#options;
    const { at } = signals;
    const { replicas: wanted, reason } = desiredReplicas(policy, signals, have);
    const bounded = Math.min(max, Math.max(min, wanted));
    // Nobody knows what was wanted before the first look: as many as there are, as Kubernetes takes it.
    if (this.#wishes.length === 0) this.#wishes.push({ at, replicas: Math.min(max, Math.max(min, have)) });
    const stable = this.#stabilized(at, bounded);
    const target =
      bounded >= have ? Math.min(bounded, have + stepMax) : Math.max(Math.min(have, stable), have - stepMax);
    const cools = this.#last !== undefined && at - this.#last.at < cooldownMicros;
    // Bounds hold whatever has just changed.
    if (target === have || (cools && have >= min && have <= max)) return { action: "none", replicas: have, reason };
    const action = target > have ? "up" : "down";
    this.#changed(at, action);
    assert(target >= Math.min(have, min) && target <= Math.max(have, max), "a change leads within the bounds");
    return { action, replicas: target, reason };
  }

  /** The largest wish of the window: what is scaled down to, as the HorizontalPodAutoscaler has it. */
  #stabilized(at: Micros, replicas: number): number {
    const since = at - this.#options.downStabilizationMicros;
    this.#wishes = this.#wishes.filter((wish) => wish.at > since && wish.replicas > replicas);
    this.#wishes.push({ at, replicas });
    return this.#wishes[0]!.replicas;
  }

  #changed(at: Micros, action: "up" | "down"): void {
    const { cooldownMicros, downStabilizationMicros } = this.#options;
    const window = Math.max(cooldownMicros, downStabilizationMicros);
    if (this.#last !== undefined && this.#last.action !== action && at - this.#last.at <= window) this.oscillations++;
    if (action === "up") this.ups++;
    else this.downs++;
    this.#last = { at, action };
  }
}
