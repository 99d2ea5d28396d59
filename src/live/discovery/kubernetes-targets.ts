import { isIPv6 } from "node:net";
import type { EndpointSlice, Pod } from "./kubernetes-objects.ts";

export type Scheme = "http" | "https";

export type AddressFamily = "ipv4" | "ipv6";

/** A pod that may be an engine, at one of its addresses, as the API server sees it at one moment. */
export interface PodSight {
  readonly address: string;
  /** Distinguishes a pod from its successor at the same address, and joins the addresses of one pod; "" where unknown. */
  readonly uid: string;
  /** Of all its addresses that are named, or will be; none where nobody knows. */
  readonly families: readonly AddressFamily[];
  /** Takes new requests: ready and not on its way out. */
  readonly serves: boolean;
  readonly labels: Readonly<Record<string, string>>;
  /** Of its engines, one each; empty where the port that was asked for is not there. */
  readonly ports: readonly number[];
  readonly scheme: Scheme;
}

/** Which of a pod's ports is the engine's. */
export interface PortChoice {
  /** These numbers, whatever the cluster names. */
  readonly ports: readonly number[] | undefined;
  /** The one with this name. */
  readonly portName: string | undefined;
  /** Undefined: https where the port's appProtocol states it. */
  readonly scheme: Scheme | undefined;
}

/** What slices leave out of the pods that they name. */
export interface SlicedPods {
  /** The pod with this name; undefined where it is not known. */
  readonly podOf: (name: string) => Pod | undefined;
  /** Families of which the service has slices; undefined where that is not known. */
  readonly families: readonly AddressFamily[] | undefined;
}

/** Where nothing names a port: vLLM's own. */
const PORT_DEFAULT = 8000;
const PORT_NAME_USUAL = "http";

/**
 * The pods in a service's endpoint slices, one row an address. An endpoint may stand in two slices while it is moved
 * between them; it serves when one states it. Conditions that are left out mean ready and not terminating.
 */
export function podsOfSlices(slices: Iterable<EndpointSlice>, known: SlicedPods, choice: PortChoice): PodSight[] {
  const found = new Map<string, PodSight>();
  for (const slice of slices) {
    const named = (slice.ports ?? []).map(({ name, port, appProtocol }) => ({ name, port, appProtocol }));
    const at = portsOf(named, choice);
    for (const { addresses, conditions, targetRef, nodeName, zone } of slice.endpoints ?? []) {
      const [address] = addresses;
      if (address === undefined) continue;
      const serves = conditions?.ready !== false && conditions?.terminating !== true;
      if (found.has(address) && !serves) continue;
      const name = targetRef?.kind === "Pod" ? targetRef.name : undefined;
      const pod = name === undefined ? undefined : known.podOf(name);
      const labels = { ...pod?.metadata?.labels, ...placeLabels(name, nodeName, zone) };
      const families = familiesOf(addressesOf(pod?.status)).filter((one) => known.families?.includes(one) ?? false);
      found.set(address, { address, uid: targetRef?.uid ?? "", families, serves, labels, ...at });
    }
  }
  return [...found.values()].sort(byAddress);
}

/** Pods that have an address and have not ended, one row an address. */
export function podsOfList(pods: Iterable<Pod>, choice: PortChoice): PodSight[] {
  const found: PodSight[] = [];
  for (const { metadata, spec, status } of pods) {
    if (status?.phase === "Succeeded" || status?.phase === "Failed") continue;
    const ready = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
    const serves = ready && metadata?.deletionTimestamp === undefined;
    const labels = { ...metadata?.labels, ...placeLabels(metadata?.name, spec?.nodeName, undefined) };
    const open = (spec?.containers ?? []).flatMap(({ ports }) => ports ?? []);
    const at = portsOf(
      open.map(({ name, containerPort: port }) => ({ name, port, appProtocol: undefined })),
      choice,
    );
    const addresses = addressesOf(status);
    const families = familiesOf(addresses);
    for (const address of addresses) {
      found.push({ address, uid: metadata?.uid ?? "", families, serves, labels, ...at });
    }
  }
  return found.sort(byAddress);
}

/** Origin of a port at an address; IPv6 addresses are bracketed. */
export function podOrigin(address: string, port: number, scheme: Scheme = "http"): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}

export function familyOf(address: string): AddressFamily {
  return isIPv6(address) ? "ipv6" : "ipv4";
}

function familiesOf(addresses: readonly string[]): AddressFamily[] {
  return [...new Set(addresses.map(familyOf))];
}

function addressesOf(status: Pod["status"]): readonly string[] {
  const all = (status?.podIPs ?? []).map(({ ip }) => ip);
  const addresses = all.length > 0 ? all : [status?.podIP ?? ""];
  return addresses.filter((address) => address !== "");
}

interface NamedPort {
  readonly name: string | undefined;
  readonly port: number | undefined;
  readonly appProtocol: string | undefined;
}

/** What was asked for; else the only port, or the one that is called http; else vLLM's own. */
function portsOf(
  open: readonly NamedPort[],
  { ports, portName, scheme }: PortChoice,
): Pick<PodSight, "ports" | "scheme"> {
  if (ports !== undefined) {
    const known = open.find(({ port }) => port === ports[0]);
    return { ports, scheme: scheme ?? schemeOf(known) };
  }
  const only = open.length === 1 ? open[0] : undefined;
  const named = portName === undefined ? only : undefined;
  const chosen = named ?? open.find(({ name }) => name === (portName ?? PORT_NAME_USUAL));
  if (chosen?.port === undefined && portName !== undefined) return { ports: [], scheme: scheme ?? "http" };
  return { ports: [chosen?.port ?? PORT_DEFAULT], scheme: scheme ?? schemeOf(chosen) };
}

function schemeOf(port: NamedPort | undefined): Scheme {
  return port?.appProtocol?.toLowerCase() === "https" ? "https" : "http";
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
