import { mix32, nameHash } from "../base/random.ts";
import type { RouteRequest } from "./request.ts";

/** What of a request may name what is to stay together. */
export type RequestKey = "session" | "tenant" | "prefix";

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
