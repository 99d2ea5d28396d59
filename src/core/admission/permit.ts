import type { AdmissionPolicy } from "./admission.ts";
import type { ModelPermit } from "./model-cap.ts";

/** What a request that was let in holds until its end. */
export interface Permit {
  /** Policies that admitted it, by name. */
  readonly limits: ReadonlyMap<string, AdmissionPolicy>;
  readonly model: ModelPermit | undefined;
  /** Made so far. */
  outputTokens: number;
  /** Output tokens that its tenant was charged with, some of them before they were made. */
  outputTokensCharged: number;
}
