import type { HedgeOptions } from "#core/retry/hedge-budget.ts";
import type { RetryOptions } from "#core/retry/retry-policy.ts";
import type { GatewayLimits } from "./limits.ts";

export function retryOptions(limits: GatewayLimits): RetryOptions {
  const { attemptsMax, continuationsMax, retryRatio: ratio, retryBurst: burst } = limits;
  return { attemptsMax, continuationsMax, ratio, burst };
}

export function hedgeOptions({ hedgeShareMax: shareMax, hedgeBurst: burst }: GatewayLimits): HedgeOptions {
  return { shareMax, burst };
}
