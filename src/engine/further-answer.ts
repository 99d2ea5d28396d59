import type { EngineRequest } from "./request.ts";

/**
 * One more answer to a request's prompt (`n`), as its engine has it beside the first: it takes a place in the batch and
 * room in the cache, and is as long as the first, since a trace has one length for all. Nobody listens to it.
 */
export class FurtherAnswer implements EngineRequest {
  readonly id: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly hashes: Int32Array;
  readonly priority: number;
  readonly deadlineAt: number | undefined;
  readonly cacheRead: boolean;

  /** `number` counts from 1; `blockTokens` is the engine's. */
  constructor(first: EngineRequest, number: number, blockTokens: number) {
    this.id = furtherId(first.id, number);
    this.promptTokens = first.promptTokens;
    this.outputTokens = first.outputTokens;
    this.hashes = first.hashes.subarray(0, 2 * Math.floor(first.promptTokens / blockTokens));
    this.priority = first.priority;
    this.deadlineAt = first.deadlineAt;
    this.cacheRead = first.cacheRead;
  }
}

/** A name that no request of a client has: those of a trace are numbered. */
export function furtherId(id: string, number: number): string {
  return `${id}#${number}`;
}
