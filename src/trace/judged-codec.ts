import type { Judged } from "#core/cascade/cascade-input.ts";
import type { Fields } from "./fields.ts";

/** What an answer's tokens are worth, as fields behind others. */
export function encodeJudged({ requestId, meanLogprob, tokens }: Judged): string {
  return `,"requestId":${JSON.stringify(requestId)},"meanLogprob":${meanLogprob},"tokens":${tokens}`;
}

export function decodeJudged(fields: Fields): Judged {
  return {
    requestId: fields.string("requestId"),
    meanLogprob: fields.number("meanLogprob"),
    tokens: fields.integer("tokens", 0),
  };
}
