import { tokensOfEach } from "#core/latency/latency-model.ts";
import type { WorkloadRequest } from "../workload-request.ts";
import type { TrafficRequest } from "./traffic.ts";

/**
 * The same traffic for formats in which a request has one prompt and one answer: of one with several, a request for each, at
 * the same time and as long as it was. The first goes on with the conversation; each other is one of its own. `counts` has how
 * many were taken apart.
 */
export async function* answersApart(
  traffic: AsyncIterable<TrafficRequest>,
  counts: { apart: number },
): AsyncGenerator<TrafficRequest> {
  let index = 0;
  for await (const one of traffic) {
    const { sequences = 1 } = one.request;
    if (sequences > 1) counts.apart++;
    for (let i = 0; i < sequences; i++) yield answerOf(one, i, index++);
  }
}

function answerOf(one: TrafficRequest, number: number, index: number): TrafficRequest {
  const { sequences = 1, tokensByPrompt: tokens, ...request } = one.request;
  if (sequences === 1) return { ...one, request: { ...one.request, index } };
  const count = tokens?.length ?? 1;
  const prompt = Math.min(count - 1, Math.floor((number * count) / sequences));
  const answer: WorkloadRequest = {
    ...request,
    index,
    promptTokens: tokens?.[prompt] ?? request.promptTokens,
    outputTokens: Math.max(1, tokensOfEach(request.outputTokens, sequences)),
    // Nothing is known of the content of others than the first.
    ...(prompt > 0 && { blockIds: undefined, text: undefined, tokenIds: undefined }),
    ...(number > 0 && {
      session: sessionOf(one, number),
      turn: 0,
      parent: undefined,
      joins: [],
      thinkMicros: undefined,
    }),
  };
  const { observed } = one;
  // Hits are reported once for all answers to a prompt, and of several prompts for the last alone.
  const isHitKnown = number === 0 && tokens === undefined;
  return {
    id: number === 0 || one.id === "" ? one.id : `${one.id}#${number}`,
    request: answer,
    observed: observed && { ...observed, cachedTokens: isHitKnown ? observed.cachedTokens : NaN },
  };
}

/** Where conversations have names, one that no other has. */
function sessionOf({ request: { session, turn } }: TrafficRequest, number: number): string {
  return session === "" ? "" : `${session}#${turn}#${number}`;
}

/** What is to be known of a file made of it; undefined where nothing is. */
export function apartNote({ apart }: { readonly apart: number }): string | undefined {
  return apart === 0
    ? undefined
    : `${apart} requests with several answers are written as one for each answer: the format has one length for a request`;
}
