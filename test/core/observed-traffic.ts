import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { loadProfile } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { Router } from "#core/router.ts";
import { type Step, drawTraffic } from "./traffic.ts";

const SEED = 23;
const STEPS = 600;

interface Observer {
  observe?(input: Input, decision: Decision | undefined, request: RouteRequest | undefined): void;
}

let drawn: readonly Step[] | undefined;

/** Lets a plugin observe drawn traffic as a router would: every input with its decision and its request. */
export function observeTraffic(plugin: Observer): void {
  drawn ??= drawTraffic(routerOfDefault(), SEED, STEPS, 6);
  const requests = new Map<string, RouteRequest>();
  for (const { input, decision } of drawn) {
    if (input.kind === "request-arrived") requests.set(input.request.id, input.request);
    plugin.observe?.(input, decision, "requestId" in input ? requests.get(input.requestId) : requestOf(input));
  }
}

function requestOf(input: Input): RouteRequest | undefined {
  return input.kind === "request-arrived" ? input.request : undefined;
}

function routerOfDefault(): Router {
  return new Router({
    seed: SEED,
    profiles: { d: loadProfile("gnomon").spec },
    defaultProfile: "d",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 50_000,
  });
}
