import type { BreakerState } from "../endpoint/breaker.ts";
import type { OutlierReason } from "../endpoint/endpoint-rules.ts";
import type { Knowledge } from "../endpoint/knowledge.ts";
import type { Standing } from "../endpoint/slow-return.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";

/** One endpoint's state for status pages. */
export interface EndpointRow extends Snapshot {
  /** Requests in flight there that peers reported, in engine requests. */
  readonly peerRequestsInFlight: number;
  /** Requests that this router placed there since it joined. */
  readonly placed: number;
  readonly cordoned: boolean;
  /** Its engine sleeps. */
  readonly asleep: boolean;
  readonly breaker: BreakerState;
  readonly standing: Standing;
  /** Why it is ejected; "" where it is not. */
  readonly ejected: "" | "unhealthy" | OutlierReason;
  /** Times that it was, by what was found. */
  readonly ejections: Readonly<Record<OutlierReason, number>>;
  /** Share of the requests that it would get, in (0, 1]; below 1 while it starts slowly. */
  readonly share: number;
  readonly indexBlocks: number;
  readonly knowledge: Knowledge;
}
