import { mix32, nameHash } from "../base/random.ts";
import type { RouteRequest } from "./request.ts";

/** By what of a request its like is known, shared by every plugin that keeps it together. */
export const REQUEST_KEY_PARAMETERS = {
  key: {
    type: "choice",
    default: "session",
    values: ["session", "tenant", "prefix"],
    meaning: "what stays together",
  },
  prefixTokens: { type: "integer", default: 256, min: 1, meaning: "leading tokens that name a prefix" },
} as const;

export type RequestKey = (typeof REQUEST_KEY_PARAMETERS)["key"]["values"][number];

/** The request's key as a number; undefined where it has none. A prefix is its first `prefixTokens`, in whole blocks. */
export function requestKey(request: RouteRequest, key: RequestKey, prefixTokens: number): number | undefined {
  if (key === "prefix") {
    const { hashes, length, blockTokens } = request.blocks;
    const block = Math.min(length, Math.max(1, Math.floor(prefixTokens / blockTokens))) - 1;
    return block < 0 ? undefined : mix32(hashes[2 * block]! ^ mix32(hashes[2 * block + 1]!));
  }
  const value = key === "session" ? request.session : request.tenant;
  return value === "" ? undefined : nameHash(value);
}
