import type { Fault } from "../endpoint/fault.ts";
import type { Micros } from "../base/units.ts";
import type { StepsOf } from "./stage-step.ts";

/**
 * An answer broke off of which the client has a part: the charge is released, and another endpoint is asked for, to go on
 * behind the tokens that the client has. Those count as prompt there.
 */
export interface RequestContinued {
  readonly kind: "request-continued";
  readonly at: Micros;
  readonly requestId: string;
  readonly fault: Fault;
  /** Output tokens of all endpoints so far behind which it goes on; 0 where it begins anew. */
  readonly outputTokens: number;
  /** As of RequestFinished, of these tokens; absent where they are not known or fill no block. */
  readonly answerHashes?: Int32Array;
  /** It goes on behind the answer's text, since nobody knows its tokens; how many there are is an estimate then. */
  readonly byText?: true;
}

export const CONTINUED_STEPS: StepsOf<RequestContinued> = {
  "request-continued": ({ fault, outputTokens, answerHashes }) => ({
    kind: "went-on",
    fault,
    outputTokens,
    answerHashes,
  }),
};
