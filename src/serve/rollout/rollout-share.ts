import type { Micros } from "#core/units.ts";
import type { SharedStore } from "../state/shared-store.ts";
import { rolloutsText, type SavedRollout, savedRollouts } from "./saved-rollout.ts";

export interface RolloutShareOptions {
  readonly store: SharedStore;
  /** Name of the value that holds them. */
  readonly key: string;
  /** Rollouts as they stand here. */
  readonly own: () => readonly SavedRollout[];
  /** One that stands further elsewhere. */
  readonly adopt: (rollout: SavedRollout) => void;
  /** What could not be read or written, in words. */
  readonly failed: (detail: string) => void;
}

/** Others that write at the same time may be quicker so often. */
const TRIES_MAX = 8;

/**
 * Rollouts that all replicas of a gateway run in step: a step that one of them makes is taken by all. Arms and windows follow
 * from the plan and the wall time of its steps alone, so nothing else has to be agreed on. Of two states of a rollout
 * that of the later step stands.
 */
export class RolloutShare {
  readonly #options: RolloutShareOptions;
  #unwatch: (() => void) | undefined;

  constructor(options: RolloutShareOptions) {
    this.#options = options;
  }

  /** Takes what is there, and all that comes. */
  async start(): Promise<void> {
    const { store, key } = this.#options;
    this.#unwatch = store.watch(key, ({ text }) => this.#take(text));
    await this.publish();
  }

  stop(): void {
    this.#unwatch?.();
  }

  /** Something has changed here. Never rejects: without the store, each goes on by itself. */
  async publish(): Promise<void> {
    const { store, key, own, failed } = this.#options;
    try {
      for (let i = 0; i < TRIES_MAX; i++) {
        const there = await store.read(key);
        if (there !== undefined) this.#take(there.text);
        const text = rolloutsText(own(), []);
        if (text === there?.text) return;
        if ((await store.replace(key, there?.revision ?? 0, text)) !== undefined) return;
      }
      failed("others wrote at the same time again and again");
    } catch (error) {
      failed(error instanceof Error ? error.message : String(error));
    }
  }

  #take(text: string): void {
    const { own, adopt, failed } = this.#options;
    try {
      const steps = new Map(own().map(({ state }): [string, Micros] => [state.plan.name, state.at]));
      for (const rollout of savedRollouts(JSON.parse(text) as unknown).rollouts) {
        if (rollout.state.at > (steps.get(rollout.state.plan.name) ?? -Infinity)) adopt(rollout);
      }
    } catch (error) {
      failed(error instanceof Error ? error.message : String(error));
    }
  }
}
