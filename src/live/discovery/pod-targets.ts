import type { StepTimes } from "#core/endpoint/step-times.ts";
import { type AddressFamily, familyOf, type PodSight, podOrigin } from "./kubernetes-targets.ts";
import type { KeeperEvent } from "../endpoints/keeper-event.ts";
import { serverTargets } from "./static.ts";
import type { Target } from "../endpoints/target.ts";

export interface PodTargetOptions {
  /** Of a pod that has both, the one that its endpoint is reached by. */
  readonly addressFamily: AddressFamily;
  /** Added to every pod's own. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Label that names the model which the pod serves, instead of what its engine lists. */
  readonly modelLabel?: string | undefined;
  readonly portName?: string | undefined;
  readonly apiKey?: string | undefined;
  readonly dataParallelRanks?: number | undefined;
  /** What steps take at a pod with these labels; undefined where nobody knows. */
  readonly stepTimesOf?: ((labels: Readonly<Record<string, string>>) => StepTimes | undefined) | undefined;
  readonly setTargets: (targets: readonly Target[]) => void;
  readonly report: (event: KeeperEvent) => void;
}

/**
 * Turns what is seen of pods into targets: one a pod, whatever its addresses, and only once it was ready. A pod that has
 * an address of the family that is asked for is reached there, in whatever order its addresses become known; one of the
 * other family counts where it has no other, or while nobody can know that it has.
 */
export class PodTargets {
  readonly #options: PodTargetOptions;
  /** uid by address of pods that are targets. */
  readonly #admitted = new Map<string, string>();
  /** Addresses of pods without the port that was asked for. */
  #portless = new Set<string>();

  constructor(options: PodTargetOptions) {
    this.#options = options;
  }

  show(sights: readonly PodSight[]): void {
    const pods = this.#onePerPod(sights);
    const present = new Set(pods.map(({ address }) => address));
    for (const address of this.#admitted.keys()) if (!present.has(address)) this.#admitted.delete(address);
    const successors = pods.filter(({ address, uid }) => (this.#admitted.get(address) ?? uid) !== uid);
    if (successors.length > 0) {
      for (const { address } of successors) this.#admitted.delete(address);
      this.#set(pods);
    }
    for (const pod of pods) if (pod.serves && !this.#waits(pod)) this.#admitted.set(pod.address, pod.uid);
    this.#reportPortless(pods);
    this.#set(pods);
  }

  #onePerPod(sights: readonly PodSight[]): PodSight[] {
    const pods = new Map<string, PodSight>();
    for (const sight of sights) {
      const key = sight.uid === "" ? sight.address : sight.uid;
      const known = pods.get(key);
      if (known === undefined || this.#rank(sight) > this.#rank(known)) pods.set(key, sight);
    }
    return [...pods.values()];
  }

  #rank({ address, uid, serves }: PodSight): number {
    const admitted = this.#admitted.get(address) === uid;
    const preferred = familyOf(address) === this.#options.addressFamily;
    if (preferred && (serves || admitted)) return 3;
    // A pod leaves an address that it is reached at only once the other one serves.
    if (admitted) return 2;
    return preferred ? 1 : 0;
  }

  /** Whether its address of the other family is one to wait for. */
  #waits({ address, families }: PodSight): boolean {
    const { addressFamily } = this.#options;
    return familyOf(address) !== addressFamily && families.includes(addressFamily);
  }

  #reportPortless(pods: readonly PodSight[]): void {
    const { portName, report } = this.#options;
    const now = new Set(pods.filter(({ ports }) => ports.length === 0).map(({ address }) => address));
    for (const address of now) {
      if (this.#portless.has(address)) continue;
      report({ kind: "refused", subject: `pod ${address}`, detail: `it has no port named ${portName ?? ""}` });
    }
    this.#portless = now;
  }

  #set(pods: readonly PodSight[]): void {
    const admitted = pods.filter(({ address }) => this.#admitted.has(address));
    this.#options.setTargets(admitted.flatMap((pod) => this.#targetsOf(pod)));
  }

  #targetsOf({ address, labels: own, serves, ports, scheme }: PodSight): Target[] {
    const { apiKey, dataParallelRanks, labels: added, modelLabel, stepTimesOf } = this.#options;
    const labels = { ...own, ...added };
    const model = modelLabel === undefined ? undefined : labels[modelLabel];
    const stepTimes = stepTimesOf?.(labels);
    return ports.flatMap((port) =>
      serverTargets({ url: podOrigin(address, port, scheme), labels, apiKey, dataParallelRanks, stepTimes }).map(
        (target) => ({
          ...target,
          ...(model !== undefined && { models: [model] }),
          cordoned: !serves,
        }),
      ),
    );
  }
}
