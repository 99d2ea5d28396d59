import type { ParsedRequest } from "../request/parse-request.ts";
import type { Dialect } from "../http/route.ts";

/** Whether the tokens of an answer can be weighed: one answer of a chat or a completion, whose text is the model's own. */
export function isJudged({ fields, sequences }: ParsedRequest, dialect: Dialect): boolean {
  if (fields === undefined || sequences !== 1 || (dialect !== "chat" && dialect !== "completions")) return false;
  return fields["echo"] !== true && fields["use_beam_search"] !== true;
}

/** What makes an engine send its tokens' log-probabilities; undefined where the client asked for them itself. */
export function logprobFields({ fields }: ParsedRequest, dialect: Dialect): object | undefined {
  const asked = fields?.["logprobs"] ?? null;
  if (dialect === "completions") return asked === null ? { logprobs: 0 } : undefined;
  return asked === true ? undefined : { logprobs: true };
}
