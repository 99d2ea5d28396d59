import type { KubernetesObject, Pod } from "./kubernetes-objects.ts";
import { type PodSight, type PortChoice, podsOfList } from "./kubernetes-targets.ts";
import { MissingObject } from "./missing-object.ts";
import { SelectedPods } from "./selected-pods.ts";
import { type PodSource, type PodSourceContext, watchOf } from "./watch-of.ts";

/** Versions of InferencePool: that of Gateway API Inference Extension 1.0, and the one before it. */
export type PoolVersion = "v1" | "v1alpha2";

/** API groups of InferencePool. */
export const POOL_GROUPS: Readonly<Record<PoolVersion, string>> = {
  v1: "inference.networking.k8s.io",
  v1alpha2: "inference.networking.x-k8s.io",
};

/** What is read of an InferencePool, of either version. */
interface InferencePool extends KubernetesObject {
  readonly spec?: {
    readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> } & Readonly<Record<string, unknown>>;
    readonly targetPorts?: readonly { readonly number?: number }[];
    readonly targetPortNumber?: number;
  };
}

/**
 * Follows an InferencePool: its selector for the pods, its target ports for the engines in each of them, one a
 * data-parallel rank where there are several. A pool that is gone, or selects nothing, has no pods.
 */
export class PoolSource implements PodSource {
  readonly #choice: PortChoice;
  readonly #show: (pods: readonly PodSight[]) => void;
  readonly #watch: PodSource;
  readonly #pods: SelectedPods;
  readonly #missing: MissingObject;
  #seen: ReadonlyMap<string, Pod> = new Map();
  #ports: readonly number[] = [];

  constructor(
    context: PodSourceContext,
    where: { readonly namespace: string; readonly pool: string; readonly version: PoolVersion },
    choice: PortChoice,
    show: (pods: readonly PodSight[]) => void,
  ) {
    const { namespace, pool, version } = where;
    this.#choice = choice;
    this.#show = show;
    this.#missing = new MissingObject(context.report, `inferencepool ${namespace}/${pool}`, "there is no such pool");
    this.#pods = new SelectedPods(context, { namespace, owner: pool }, (pods) => {
      this.#seen = pods;
      this.#changedPods();
    });
    const collection = { group: POOL_GROUPS[version], version, resource: "inferencepools", namespace };
    this.#watch = watchOf<InferencePool>(
      context,
      { ...collection, fieldSelector: `metadata.name=${pool}` },
      pool,
      (objects) => this.#changed([...objects.values()][0]),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#watch.stop(), this.#pods.stop()]);
  }

  #changed(pool: InferencePool | undefined): void {
    this.#missing.set(pool === undefined);
    const { selector, targetPorts, targetPortNumber } = pool?.spec ?? {};
    const labels = Object.entries(selector?.matchLabels ?? selector ?? {});
    const text = labels.map(([name, value]) => `${name}=${String(value)}`).join(",");
    const numbers = targetPorts?.flatMap(({ number }) => number ?? []) ?? [];
    this.#ports = numbers.length === 0 && targetPortNumber !== undefined ? [targetPortNumber] : numbers;
    if (!this.#pods.select(text)) return this.#changedPods();
    // Those of the selector before are gone; the new one's come with its first list.
    if (text !== "") this.#seen = new Map();
  }

  #changedPods(): void {
    const ports = this.#ports.length === 0 ? this.#choice.ports : this.#ports;
    this.#show(podsOfList(this.#seen.values(), { ...this.#choice, ports }));
  }
}
