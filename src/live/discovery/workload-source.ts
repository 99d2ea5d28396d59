import { type PodSource, type PodSourceContext, watchOf } from "./watch-of.ts";
import {
  type InferenceModelRewrite,
  type InferenceObjective,
  ModelRewrites,
  prioritiesOf,
  type RuledPool,
  type WorkloadRules,
} from "./workload-rules.ts";

/** API groups that have InferenceObjective and InferenceModelRewrite, both in version v1alpha2. */
export type WorkloadGroup = "llm-d.ai" | "inference.networking.x-k8s.io";

/** Follows what is stated of a pool in its namespace, and shows all of it after each change. */
export class WorkloadSource implements PodSource {
  readonly #watches: readonly PodSource[];
  #priorities: WorkloadRules["priorities"] = {};
  #rewrites = ModelRewrites.none;

  constructor(
    context: PodSourceContext,
    where: { readonly namespace: string; readonly pool: RuledPool; readonly group: WorkloadGroup },
    show: (rules: WorkloadRules) => void,
  ) {
    const { namespace, pool, group } = where;
    const shown = (): void => show({ priorities: this.#priorities, rewrites: this.#rewrites });
    const collection = (resource: string) => ({ group, version: "v1alpha2", resource, namespace });
    this.#watches = [
      watchOf<InferenceObjective>(context, collection("inferenceobjectives"), pool.name, (objects) => {
        this.#priorities = prioritiesOf(objects.values(), pool);
        shown();
      }),
      watchOf<InferenceModelRewrite>(context, collection("inferencemodelrewrites"), pool.name, (objects) => {
        this.#rewrites = new ModelRewrites(objects.values(), pool);
        shown();
      }),
    ];
  }

  async stop(): Promise<void> {
    await Promise.all(this.#watches.map((watch) => watch.stop()));
  }
}
