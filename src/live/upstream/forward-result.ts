import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Micros } from "#core/base/units.ts";

import type { Usage } from "../answer/answer-json.ts";

/** How a forwarded request went. */
export interface ForwardResult {
  readonly outcome: Outcome;
  readonly usage: Usage | undefined;
  readonly outputTokens: number | undefined;
  readonly firstTokenAt: Micros | undefined;
  /** As of AnswerCounts. */
  readonly responseId?: string | undefined;
}
