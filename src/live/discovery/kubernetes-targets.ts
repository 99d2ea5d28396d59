import type { V1EndpointSlice, V1Pod } from "@kubernetes/client-node";

/** A pod that may be an engine, as the API server sees it at one moment. */
export interface PodSight {
  readonly address: string;
  /** Distinguishes a pod from its successor at the same address; "" where unknown. */
  readonly uid: string;
  /** Takes new requests: ready and not on its way out. */
  readonly serves: boolean;
  readonly labels: Readonly<Record<string, string>>;
}

/** Labels by the name of a pod, {} where they are not known. */
export type PodLabels = (podName: string) => Readonly<Record<string, string>>;

/**
 * The pods in a service's endpoint slices. An endpoint may stand in two slices while it is moved between them; it serves
 * when one states it. Conditions that are left out mean ready and not terminating.
 */
export function podsOfSlices(slices: Iterable<V1EndpointSlice>, labelsOf: PodLabels): PodSight[] {
  const found = new Map<string, PodSight>();
  for (const slice of slices) {
    for (const { addresses, conditions, targetRef, nodeName, zone } of slice.endpoints ?? []) {
      const [address] = addresses;
      if (address === undefined) continue;
      const serves = conditions?.ready !== false && conditions?.terminating !== true;
      if (found.has(address) && !serves) continue;
      const pod = targetRef?.kind === "Pod" ? targetRef.name : undefined;
      const labels = { ...(pod === undefined ? {} : labelsOf(pod)), ...placeLabels(pod, nodeName, zone) };
      found.set(address, { address, uid: targetRef?.uid ?? "", serves, labels });
    }
  }
  return [...found.values()].sort(byAddress);
}

/** Pods that have an address and have not ended. */
export function podsOfList(pods: Iterable<V1Pod>): PodSight[] {
  const found: PodSight[] = [];
  for (const { metadata, spec, status } of pods) {
    const address = status?.podIP;
    if (address === undefined || address === "" || status?.phase === "Succeeded" || status?.phase === "Failed")
      continue;
    const ready = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
    const serves = ready && metadata?.deletionTimestamp === undefined;
    const labels = { ...metadata?.labels, ...placeLabels(metadata?.name, spec?.nodeName, undefined) };
    found.push({ address, uid: metadata?.uid ?? "", serves, labels });
  }
  return found.sort(byAddress);
}

/** Origin of a port at an address; IPv6 addresses are bracketed. */
export function podOrigin(address: string, port: number): string {
  return `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

function placeLabels(pod: string | undefined, node: string | undefined, zone: string | undefined) {
  return {
    ...(pod === undefined ? {} : { "kubernetes.io/pod": pod }),
    ...(node === undefined ? {} : { "kubernetes.io/hostname": node }),
    ...(zone === undefined ? {} : { "topology.kubernetes.io/zone": zone }),
  };
}

function byAddress(a: PodSight, b: PodSight): number {
  return a.address < b.address ? -1 : 1;
}
