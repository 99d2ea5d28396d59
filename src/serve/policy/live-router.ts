import { isDeepStrictEqual } from "node:util";
import { breakerOptions } from "#config/breaker-options.ts";
import { endpointRules } from "#config/endpoint-rules.ts";
import { admissionSpec } from "#config/admission-spec.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { HOST_MEMORY_PRICE, type HostMemoryPrice } from "#core/prefix/host-memory-price.ts";
import { BLOCK_TOKENS_DEFAULT } from "#live/endpoints/block-size.ts";
import { FIRST_POLICY_VERSION, type ProfileSpec } from "#core/plugin/spec.ts";
import { Router, type RouterOptions } from "#core/router.ts";
import { nameHash } from "#core/base/random.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { TraceRouter } from "#trace/codec/record.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { part } from "../assembly/part.ts";
import type { BreakerChange } from "#core/endpoint/breaker.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";
import { intakeOf } from "./router-intake.ts";
import { type LiveState, rememberSessions } from "./live-state.ts";

/** What a plan states of the router; a trace's header holds the same. */
export function routerSettings(
  { config, profile, profiles, replica }: ServePlan,
  policyVersion: number = FIRST_POLICY_VERSION,
): TraceRouter {
  const seed = replica === undefined ? config.routing.seed : (config.routing.seed ^ nameHash(replica)) >>> 0;
  const admission = admissionSpec(config.admission);
  const hostMemory = hostMemoryPrice(config);
  const rules = endpointRules(config);
  const specs = Object.values(profiles).map(({ name, spec }): [string, ProfileSpec] => [name, spec]);
  return {
    seed,
    profiles: Object.fromEntries(specs),
    defaultProfile: profile.name,
    policyVersion,
    ...(admission && { admission }),
    ...(rules && { endpointRules: rules }),
    blockTokens: config.prefix.blockTokens === "engine" ? BLOCK_TOKENS_DEFAULT : config.prefix.blockTokens,
    staleAfterMicros: config.scrape.staleAfterMillis * MICROS_PER_MILLI,
    ...(isDeepStrictEqual(hostMemory, HOST_MEMORY_PRICE) ? {} : { hostMemory }),
    breaker: breakerOptions(config),
  };
}

function hostMemoryPrice({ kvEvents: { hostMemory } }: ServePlan["config"]): HostMemoryPrice {
  const { copyMicros, copyMicrosPerToken, prefillMicrosPerToken } = hostMemory;
  return { baseMicros: copyMicros, tokenMicros: copyMicrosPerToken, prefillTokenMicros: prefillMicrosPerToken };
}

/** A router with nothing in it yet. */
export function newRouter(
  { breaker, ...settings }: TraceRouter,
  breakerChanged: RouterOptions["breakerChanged"] = () => {},
  also: Pick<RouterOptions, "sessionRemembered"> = {},
): Router {
  const options: RouterOptions = { ...settings, index: new DualIndex(), breakerChanged, ...also };
  return new Router(breaker === undefined ? options : { ...options, breaker });
}

/** Notified of breakers that open and close. */
export type Breakers = Set<(endpoint: EndpointId, change: BreakerChange) => void>;

export const breakersPart = part({ name: "breakers", needs: [], start: (): Breakers => new Set() });

export const settingsPart = part({
  name: "settings",
  needs: ["state", "replica"],
  start: ({ state, replica }: { readonly state: LiveState; readonly replica: string | undefined }) =>
    routerSettings({ ...state.inForce, replica }, state.policyVersion),
});

/** The only way to the router, which has nothing in it yet. */
export const intakePart = part({
  name: "intake",
  needs: ["plan", "settings", "state", "breakers", "logs"],
  start: ({ plan, settings, state, breakers, logs }: Routed) => {
    const changed = (endpoint: EndpointId, change: BreakerChange): void => {
      for (const listener of breakers) listener(endpoint, change);
    };
    const router: Router = newRouter(
      settings,
      changed,
      rememberSessions(state, () => router),
    );
    return intakeOf(plan.config, router, logs.faults);
  },
});

interface Routed extends Pick<GatewayContext, "plan"> {
  readonly logs: { readonly faults: FaultLog };
  readonly settings: TraceRouter;
  readonly state: LiveState;
  readonly breakers: Breakers;
}
