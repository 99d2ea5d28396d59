import type { KubernetesObject, V1Pod } from "@kubernetes/client-node";
import { type PodSight, type PortChoice, podsOfList } from "./kubernetes-targets.ts";
import { type PodSource, type PodSourceContext, watchOf } from "./pod-source.ts";

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
  readonly #context: PodSourceContext;
  readonly #namespace: string;
  readonly #pool: string;
  readonly #choice: PortChoice;
  readonly #show: (pods: readonly PodSight[]) => void;
  readonly #watch: PodSource;
  readonly #ending = new Set<Promise<void>>();
  #pods: PodSource | undefined;
  #seen: ReadonlyMap<string, V1Pod> = new Map();
  #selector = "";
  #ports: readonly number[] = [];
  #missing = false;

  constructor(
    context: PodSourceContext,
    where: { readonly namespace: string; readonly pool: string; readonly version: PoolVersion },
    choice: PortChoice,
    show: (pods: readonly PodSight[]) => void,
  ) {
    const { namespace, pool, version } = where;
    this.#context = context;
    this.#namespace = namespace;
    this.#pool = pool;
    this.#choice = choice;
    this.#show = show;
    const collection = { group: POOL_GROUPS[version], version, resource: "inferencepools", namespace };
    this.#watch = watchOf<InferencePool>(
      context,
      { ...collection, fieldSelector: `metadata.name=${pool}` },
      pool,
      (objects) => this.#changed([...objects.values()][0]),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#watch.stop(), this.#pods?.stop(), ...this.#ending]);
  }

  #changed(pool: InferencePool | undefined): void {
    this.#reportMissing(pool === undefined);
    const { selector, targetPorts, targetPortNumber } = pool?.spec ?? {};
    const labels = Object.entries(selector?.matchLabels ?? selector ?? {});
    const text = labels.map(([name, value]) => `${name}=${String(value)}`).join(",");
    const numbers = targetPorts?.flatMap(({ number }) => number ?? []) ?? [];
    this.#ports = numbers.length === 0 && targetPortNumber !== undefined ? [targetPortNumber] : numbers;
    if (text === this.#selector) return this.#changedPods();
    this.#selector = text;
    this.#endPods();
    // Without a selector every pod of the namespace would be listed.
    if (text === "") return this.#changedPods();
    const collection = { group: "", version: "v1", resource: "pods", namespace: this.#namespace, labelSelector: text };
    this.#pods = watchOf<V1Pod>(this.#context, collection, this.#pool, (pods) => {
      this.#seen = pods;
      this.#changedPods();
    });
  }

  #changedPods(): void {
    const ports = this.#ports.length === 0 ? this.#choice.ports : this.#ports;
    this.#show(podsOfList(this.#seen.values(), { ...this.#choice, ports }));
  }

  #endPods(): void {
    this.#seen = new Map();
    if (this.#pods === undefined) return;
    const ending = this.#pods.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    this.#pods = undefined;
  }

  #reportMissing(missing: boolean): void {
    if (missing === this.#missing) return;
    this.#missing = missing;
    const subject = `inferencepool ${this.#namespace}/${this.#pool}`;
    if (missing) this.#context.report({ kind: "source-failed", subject, detail: "there is no such pool" });
    else this.#context.report({ kind: "source-recovered", subject, detail: "" });
  }
}
