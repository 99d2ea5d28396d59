import { continued } from "../prompt/block-chain.ts";
import type { RouteRequest } from "./request.ts";
import type { WentOn } from "./stage-step.ts";

/** A request as the endpoint sees it that goes on behind a part of the answer: that part is prompt there. */
export function behindAnswer(asked: RouteRequest, { outputTokens, answerHashes }: WentOn): RouteRequest {
  const { promptTokens, outputTokensMax, blocks } = asked;
  return {
    ...asked,
    promptTokens: promptTokens + outputTokens,
    outputTokensMax: outputTokensMax === undefined ? undefined : Math.max(1, outputTokensMax - outputTokens),
    blocks: answerHashes === undefined ? blocks : continued(blocks, answerHashes),
  };
}
