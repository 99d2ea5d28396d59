import type { KubernetesObject, V1EndpointSlice, V1Pod, V1Service } from "@kubernetes/client-node";
import type { Collection, KubernetesApi } from "./kubernetes-api.ts";
import { type PodLabels, type PodSight, type PortChoice, podsOfList, podsOfSlices } from "./kubernetes-targets.ts";
import { ResourceWatch, type WatchTimes } from "./kubernetes-watch.ts";
import type { KeeperEvent } from "./keeper-event.ts";
import type { SourceBoard } from "./source-board.ts";
import { SourceStatus } from "./source-status.ts";

/** What every watch of a source needs. */
export interface PodSourceContext {
  readonly api: KubernetesApi;
  readonly times: WatchTimes;
  readonly board: SourceBoard;
  readonly report: (event: KeeperEvent) => void;
}

/** Follows something of the cluster until it is stopped. */
export interface PodSource {
  stop(): Promise<void>;
}

const CORE = { group: "", version: "v1" } as const;

/** Follows the pods that a label selector finds. */
export function followSelector(
  context: PodSourceContext,
  where: { readonly namespace: string; readonly selector: string },
  choice: PortChoice,
  show: (pods: readonly PodSight[]) => void,
): PodSource {
  const { namespace, selector } = where;
  const collection = { ...CORE, resource: "pods", namespace, labelSelector: selector };
  return watchOf<V1Pod>(context, collection, selector, (pods) => show(podsOfList(pods.values(), choice)));
}

/**
 * Follows a service: its endpoint slices for the pods and whether they are ready, the service itself for its selector,
 * and the pods that this selects for their labels. A service without a selector has pods without labels.
 */
export class ServiceSource implements PodSource {
  readonly #context: PodSourceContext;
  readonly #namespace: string;
  readonly #service: string;
  readonly #show: () => void;
  readonly #watches: PodSource[];
  readonly #ending = new Set<Promise<void>>();
  #pods: PodSource | undefined;
  #selector = "";
  #slices: ReadonlyMap<string, V1EndpointSlice> = new Map();
  #labelsOf: PodLabels = () => ({});
  #missing = false;

  constructor(
    context: PodSourceContext,
    where: { readonly namespace: string; readonly service: string },
    choice: PortChoice,
    show: (pods: readonly PodSight[]) => void,
  ) {
    const { namespace, service } = where;
    this.#context = context;
    this.#namespace = namespace;
    this.#service = service;
    this.#show = () => show(podsOfSlices(this.#slices.values(), this.#labelsOf, choice));
    const slices = {
      group: "discovery.k8s.io",
      version: "v1",
      resource: "endpointslices",
      namespace,
      labelSelector: `kubernetes.io/service-name=${service}`,
    };
    const itself = { ...CORE, resource: "services", namespace, fieldSelector: `metadata.name=${service}` };
    this.#watches = [
      watchOf<V1EndpointSlice>(context, slices, service, (objects) => {
        this.#slices = objects;
        this.#show();
      }),
      watchOf<V1Service>(context, itself, service, (objects) => this.#changed([...objects.values()][0])),
    ];
  }

  async stop(): Promise<void> {
    const all = [...this.#watches, ...(this.#pods === undefined ? [] : [this.#pods])];
    await Promise.all([...all.map((watch) => watch.stop()), ...this.#ending]);
  }

  /** A service that is gone leaves its pods' labels as they are: the slices state which of them still serve. */
  #changed(service: V1Service | undefined): void {
    this.#reportMissing(service === undefined);
    if (service === undefined) return;
    const selector = Object.entries(service.spec?.selector ?? {})
      .map(([name, value]) => `${name}=${value}`)
      .join(",");
    if (selector === this.#selector) return;
    this.#selector = selector;
    this.#endPods();
    // Without a selector every pod of the namespace would be listed.
    if (selector === "") {
      this.#labelsOf = () => ({});
      return this.#show();
    }
    const namespace = this.#namespace;
    const collection = { ...CORE, resource: "pods", namespace, labelSelector: selector };
    this.#pods = watchOf<V1Pod>(this.#context, collection, this.#service, (pods) => {
      this.#labelsOf = (name) => pods.get(`${namespace}/${name}`)?.metadata?.labels ?? {};
      this.#show();
    });
  }

  #endPods(): void {
    if (this.#pods === undefined) return;
    const ending = this.#pods.stop().finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    this.#pods = undefined;
  }

  #reportMissing(missing: boolean): void {
    if (missing === this.#missing) return;
    this.#missing = missing;
    const subject = `service ${this.#namespace}/${this.#service}`;
    if (missing) this.#context.report({ kind: "source-failed", subject, detail: "there is no such service" });
    else this.#context.report({ kind: "source-recovered", subject, detail: "" });
  }
}

/** A watch with its row in the metrics and its lines in the log, both under "RESOURCE NAMESPACE/NAME". */
export function watchOf<T extends KubernetesObject>(
  { api, times, board, report }: PodSourceContext,
  collection: Collection,
  name: string,
  changed: (objects: ReadonlyMap<string, T>) => void,
): PodSource {
  const subject = `${collection.resource} ${collection.namespace}/${name}`;
  const status = new SourceStatus(subject);
  board.add(status);
  const trouble = (detail: string): void =>
    report({ kind: detail === "" ? "source-recovered" : "source-failed", subject, detail });
  const watch = new ResourceWatch<T>({ api, collection, changed, trouble, status, ...times });
  return {
    stop: () => {
      board.remove(status);
      return watch.stop();
    },
  };
}
