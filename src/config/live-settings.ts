import type { Path } from "./schema-node.ts";

/** Keys of the configuration that may change while the gateway runs; of `limits` those that are not FIXED_LIMITS. */
export const LIVE_SETTINGS = [
  "routing.profile",
  "routing.models",
  "routing.profilesAllowed",
  "routing.profileHeader",
  "profiles",
  "admission",
  "limits",
  "rollout.start",
] as const;

export type LiveSetting = (typeof LIVE_SETTINGS)[number];

/** Limits that sockets and timers were made with. */
export const FIXED_LIMITS: ReadonlySet<string> = new Set([
  "connectMillisMax",
  "upstreamKeepAliveMillis",
  "headersMillisMax",
  "answersWaitingMax",
  "sweepMillis",
]);

/** Whether a key of the configuration may change while the gateway runs; every other one needs a restart. */
export function isLive([section, key]: Path): boolean {
  const setting = LIVE_SETTINGS.find((one) => one === section || one === `${section}.${key}`);
  return setting !== undefined && !(setting === "limits" && (key === undefined || FIXED_LIMITS.has(String(key))));
}
