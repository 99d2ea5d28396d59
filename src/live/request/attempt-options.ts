import type { HedgeOptions } from "#core/path/hedge-budget.ts";
import type { RetryOptions } from "#core/path/retry-policy.ts";
import type { GatewayLimits } from "../http/limits.ts";

export function retryOptions(limits: GatewayLimits): RetryOptions {
  const { attemptsMax, continuationsMax, retryRatio: ratio, retryBurst: burst } = limits;
  return { attemptsMax, continuationsMax, ratio, burst };
}

export function hedgeOptions({ hedgeShareMax: shareMax, hedgeBurst: burst }: GatewayLimits): HedgeOptions {
  return { shareMax, burst };
}
