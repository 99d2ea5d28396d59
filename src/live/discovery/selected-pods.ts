import type { Pod } from "./kubernetes-objects.ts";
import { type PodSource, type PodSourceContext, watchOf } from "./watch-of.ts";

type Pods = ReadonlyMap<string, Pod>;

const NO_PODS: Pods = new Map();

/** Follows the pods of one label selector at a time; none at first. */
export class SelectedPods implements PodSource {
  readonly #context: PodSourceContext;
  readonly #namespace: string;
  readonly #owner: string;
  readonly #changed: (pods: Pods) => void;
  readonly #ending = new Set<Promise<void>>();
  #watch: PodSource | undefined;
  #selector = "";

  /** `owner` has the selector, and names the watch in metrics and log. `changed` gets the pods by "NAMESPACE/NAME". */
  constructor(
    context: PodSourceContext,
    { namespace, owner }: { readonly namespace: string; readonly owner: string },
    changed: (pods: Pods) => void,
  ) {
    this.#context = context;
    this.#namespace = namespace;
    this.#owner = owner;
    this.#changed = changed;
  }

  /** Follows another selector, by `name=value` with commas between; false where it is the one that is followed already. */
  select(selector: string): boolean {
    if (selector === this.#selector) return false;
    this.#selector = selector;
    this.#end();
    // Without a selector every pod of the namespace would be listed.
    if (selector === "") this.#changed(NO_PODS);
    else this.#watch = watchOf<Pod>(this.#context, this.#collection, this.#owner, this.#changed);
    return true;
  }

  async stop(): Promise<void> {
    await Promise.all([this.#watch?.stop(), ...this.#ending]);
  }

  get #collection() {
    return { group: "", version: "v1", resource: "pods", namespace: this.#namespace, labelSelector: this.#selector };
  }

  #end(): void {
    if (this.#watch === undefined) return;
    const ending = this.#watch.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    this.#watch = undefined;
  }
}
