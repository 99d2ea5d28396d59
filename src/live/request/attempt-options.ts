import type { HedgeOptions } from "#core/path/hedging/hedge-budget.ts";
import type { RetryOptions } from "#core/path/retry-policy.ts";
import type { GatewayLimits } from "./limits.ts";

export function retryOptions(limits: GatewayLimits): RetryOptions {
  const { attemptsMax, continuationsMax, retryRatio: ratio, retryBurst: burst } = limits;
  return { attemptsMax, continuationsMax, ratio, burst };
}

export function hedgeOptions({ hedgeShareMax: shareMax, hedgeBurst: burst }: GatewayLimits): HedgeOptions {
  return { shareMax, burst };
}
