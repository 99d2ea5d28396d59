import type { Rejected } from "#core/input/decision.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";

import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { unknownModelMessage } from "../endpoints/models.ts";
import { type Refusal, refusal } from "../http/errors.ts";

/** Longest time that Retry-After asks for. */
const RETRY_SECONDS_MAX = 3_600;

/** What the client of a rejected request gets. */
export function refusalOf(rejected: Rejected, model: string, directory: EndpointDirectory): Refusal {
  const { reason, retryMicros } = rejected;
  if (reason === "unknown-model") return refusal(reason, unknownModelMessage(directory, model), "model");
  if (reason === "excluded") {
    const none = `The filters of profile ${rejected.profile} take none of the engines that serve this model.`;
    return refusal("no-endpoint", none);
  }
  const refused = refusal(reason, MESSAGES[reason]);
  if (retryMicros === undefined) return refused;
  const seconds = Math.ceil(retryMicros / MICROS_PER_SECOND);
  return { ...refused, retryAfterSeconds: Math.min(RETRY_SECONDS_MAX, Math.max(1, seconds)) };
}

const MESSAGES: Readonly<Record<Exclude<Rejected["reason"], "unknown-model" | "excluded">, string>> = {
  "no-endpoint": "No engine is ready for this request.",
  asleep: "All engines that serve this model are asleep; try again once one of them is awake.",
  saturated: "All engines that serve this model are at their limit; try again later.",
  "bucket-empty": "Too many tokens were asked for in too short a time; try again later.",
  "rate-limit": "Too many requests came in too short a time; try again later.",
  "tenant-quota": "Too many of your requests are being served already; try again later.",
  "usage-quota": "The quota of requests or tokens for this period is used up; try again later.",
  "hard-cap": "The gateway's limit of concurrent requests is reached; try again later.",
  "model-cap": "The limit of concurrent requests for this model is reached; try again later.",
  shed: "The engines are saturated, and requests of this class are not served meanwhile; try again later.",
  "queue-full": "Too many requests wait already; try again later.",
  "queue-timeout": "No engine had room for this request in time; try again later.",
  "queue-evicted": "Too many requests wait, and this one had to make room; try again later.",
};
