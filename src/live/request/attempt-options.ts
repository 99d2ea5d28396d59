import type { PathRouterOptions } from "#core/path/path-router.ts";
import { stageSettings } from "#core/stages.ts";
import type { GatewayLimits } from "../http/limits.ts";

/** What limits allow a request to be sent for. */
export function attemptOptions(limits: GatewayLimits): Pick<PathRouterOptions, "retry" | "settings"> {
  const { attemptsMax, continuationsMax, retryRatio: ratio, retryBurst: burst } = limits;
  return { retry: { attemptsMax, continuationsMax, ratio, burst }, settings: stageSettings(limits) };
}
