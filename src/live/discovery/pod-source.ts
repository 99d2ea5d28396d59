import type { EndpointSlice, Pod, KubernetesService } from "./kubernetes-objects.ts";
import { type AddressFamily, type PodSight, type PortChoice, podsOfList, podsOfSlices } from "./kubernetes-targets.ts";
import { MissingObject } from "./missing-object.ts";
import { SelectedPods } from "./selected-pods.ts";
import { type PodSource, type PodSourceContext, watchOf } from "./watch-of.ts";

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
  return watchOf<Pod>(context, collection, selector, (pods) => show(podsOfList(pods.values(), choice)));
}

/**
 * Follows a service: its endpoint slices for the pods and whether they are ready, the service itself for its selector and
 * families of addresses, and the pods that it selects for their labels and addresses. A service without a selector has
 * pods without labels.
 */
export class ServiceSource implements PodSource {
  readonly #watches: readonly PodSource[];
  readonly #pods: SelectedPods;
  readonly #missing: MissingObject;
  readonly #showAll: () => void;
  #slices: ReadonlyMap<string, EndpointSlice> = new Map();
  #selected: ReadonlyMap<string, Pod> = new Map();
  #families: readonly AddressFamily[] | undefined;

  constructor(
    context: PodSourceContext,
    where: { readonly namespace: string; readonly service: string },
    choice: PortChoice,
    show: (pods: readonly PodSight[]) => void,
  ) {
    const { namespace, service } = where;
    this.#missing = new MissingObject(context.report, `service ${namespace}/${service}`, "there is no such service");
    const podOf = (name: string): Pod | undefined => this.#selected.get(`${namespace}/${name}`);
    this.#showAll = () => show(podsOfSlices(this.#slices.values(), { podOf, families: this.#families }, choice));
    this.#pods = new SelectedPods(context, { namespace, owner: service }, (pods) => {
      this.#selected = pods;
      this.#showAll();
    });
    const slices = {
      group: "discovery.k8s.io",
      version: "v1",
      resource: "endpointslices",
      namespace,
      labelSelector: `kubernetes.io/service-name=${service}`,
    };
    const itself = { ...CORE, resource: "services", namespace, fieldSelector: `metadata.name=${service}` };
    this.#watches = [
      watchOf<EndpointSlice>(context, slices, service, (objects) => {
        this.#slices = objects;
        this.#showAll();
      }),
      watchOf<KubernetesService>(context, itself, service, (objects) => this.#changed([...objects.values()][0])),
    ];
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#watches, this.#pods].map((watch) => watch.stop()));
  }

  /** A service that is gone leaves its pods' labels as they are: the slices state which of them still serve. */
  #changed(service: KubernetesService | undefined): void {
    this.#missing.set(service === undefined);
    if (service === undefined) return;
    this.#families = service.spec?.ipFamilies?.map((one) => (one === "IPv6" ? "ipv6" : "ipv4"));
    this.#showAll();
    const labels = Object.entries(service.spec?.selector ?? {});
    this.#pods.select(labels.map(([name, value]) => `${name}=${value}`).join(","));
  }
}
