import type { EngineRequest } from "./request.ts";

/** A prompt of a request that has several, as its engine reads it. */
export interface EnginePrompt {
  readonly promptTokens: number;
  readonly hashes: Int32Array;
}

/**
 * One more answer to a request (`n`, or another one of its prompts), as its engine has it beside the first: it takes a place
 * in the batch and room in the cache, and is as long as the first, since a trace has one length for all.
 */
export class FurtherAnswer implements EngineRequest {
  readonly id: string;
  /** What the engine was given for the first answer. */
  readonly first: EngineRequest;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly hashes: Int32Array;
  readonly priority: number;
  readonly deadlineAt: number | undefined;
  readonly cacheRead: boolean;

  /** `number` counts from 1. */
  constructor(first: EngineRequest, number: number, { promptTokens, hashes }: EnginePrompt) {
    this.id = furtherId(first.id, number);
    this.first = first;
    this.promptTokens = promptTokens;
    this.outputTokens = first.outputTokens;
    this.hashes = hashes;
    this.priority = first.priority;
    this.deadlineAt = first.deadlineAt;
    this.cacheRead = first.cacheRead;
  }
}

/**
 * All answers but the first, of so many altogether: as many to each prompt, one prompt after the other as vLLM takes them.
 * `prompts` are those behind the first answer's, whose blocks its own answer is no part of; `blockTokens` is the engine's.
 */
export function furtherAnswers(
  first: EngineRequest,
  sequences: number,
  blockTokens: number,
  prompts: readonly EnginePrompt[],
): FurtherAnswer[] {
  const { promptTokens, hashes } = first;
  const own = { promptTokens, hashes: hashes.subarray(0, 2 * Math.floor(promptTokens / blockTokens)) };
  const toEach = Math.max(1, Math.floor(sequences / (prompts.length + 1)));
  return Array.from({ length: sequences - 1 }, (_, i) => {
    const prompt = Math.min(prompts.length, Math.floor((i + 1) / toEach));
    return new FurtherAnswer(first, i + 1, prompt === 0 ? own : prompts[prompt - 1]!);
  });
}

/** A name that no request of a client has: those of a trace are numbered. */
function furtherId(id: string, number: number): string {
  return `${id}#${number}`;
}
