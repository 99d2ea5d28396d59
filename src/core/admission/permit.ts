import type { AdmissionPolicy } from "./admission.ts";
import type { ModelPermit } from "./model-cap.ts";

/** What a request that was let in holds until its end. */
export interface Permit {
  /** Policies that admitted it, by name. */
  readonly limits: ReadonlyMap<string, AdmissionPolicy>;
  readonly model: ModelPermit | undefined;
  /** Output tokens that its tenant was charged with. */
  outputTokens: number;
}
