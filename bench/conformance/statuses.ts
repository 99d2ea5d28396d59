import type { Shown } from "./envoy-files.ts";
import { addressOf, serviceOf } from "./envoy-files.ts";
import { type Gateway, parentsAt, type Pool, poolOf, type Resource, type Route } from "./resources.ts";

function condition({ metadata }: Resource, type: string, isTrue: boolean, reason: string): object {
  return {
    type,
    status: isTrue ? "True" : "False",
    reason,
    message: "",
    observedGeneration: metadata.generation,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  };
}

export function gatewayStatus(gateway: Gateway, { gateways, routes }: Shown): object {
  const attachedRoutes = routes.filter((route) => parentsAt(route, gateway).length > 0).length;
  return {
    addresses: [{ type: "IPAddress", value: addressOf(gateway, gateways) }],
    conditions: ["Accepted", "Programmed"].map((type) => condition(gateway, type, true, type)),
    listeners: gateway.spec.listeners.map(({ name }) => ({
      name,
      attachedRoutes,
      supportedKinds: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute" }],
      conditions: ["Accepted", "Programmed", "ResolvedRefs"].map((type) => condition(gateway, type, true, type)),
    })),
  };
}

export function routeStatus(route: Route, { pools }: Shown, controllerName: string): object {
  const names = route.spec.rules.flatMap(({ backendRefs = [] }) => backendRefs.map(({ name }) => name));
  const isResolved = names.every((name) => poolOf(route, name, pools) !== undefined);
  const parents = route.spec.parentRefs.map((parentRef) => ({
    parentRef,
    controllerName,
    conditions: [
      condition(route, "Accepted", true, "Accepted"),
      condition(route, "ResolvedRefs", isResolved, isResolved ? "ResolvedRefs" : "BackendNotFound"),
    ],
  }));
  return { parents };
}

export function poolStatus(pool: Pool, shown: Shown, controllerName: string): object {
  const { gateways, routes, pools } = shown;
  const isResolved = serviceOf(pool, shown) !== undefined;
  const isNamed = (route: Route): boolean =>
    route.spec.rules.some(({ backendRefs = [] }) =>
      backendRefs.some(({ name }) => poolOf(route, name, pools) === pool),
    );
  const parents = gateways
    .filter((gateway) => routes.some((route) => parentsAt(route, gateway).length > 0 && isNamed(route)))
    .map((gateway) => ({
      controllerName,
      parentRef: {
        group: "gateway.networking.k8s.io",
        kind: "Gateway",
        name: gateway.metadata.name,
        namespace: gateway.metadata.namespace,
      },
      conditions: [
        condition(pool, "Accepted", true, "Accepted"),
        condition(pool, "ResolvedRefs", isResolved, isResolved ? "ResolvedRefs" : "InvalidExtensionRef"),
      ],
    }));
  return { parents };
}
