import type { PeerUsed } from "../request/peer-news.ts";
import { EMPTY_CHAIN } from "../prompt/block-chain.ts";
import type { Micros } from "../base/units.ts";
import type { AdmissionPolicy } from "./admission.ts";

/** Counts requests that are over and that another router could not report before: as if they had come now. */
export function usedElsewhere(limits: Iterable<AdmissionPolicy>, at: Micros, used: PeerUsed): void {
  const { model, tenant, user, requests, promptTokens, outputTokens } = used;
  const each = {
    id: "",
    model,
    tenant,
    ...(user !== undefined && { user }),
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: promptTokens / requests,
    promptTokensExact: true,
    outputTokensMax: outputTokens / requests,
    sequences: 1,
    blocks: EMPTY_CHAIN,
    profile: "",
  };
  // What counts requests in flight has nothing to count.
  for (const limit of limits) if (!limit.holds) limit.admitted(each, at, requests);
}
