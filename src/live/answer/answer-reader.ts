import type { RequestFinished } from "#core/input/input.ts";
import type { Usage } from "./answer-json.ts";

/** Reads an answer as it passes, for the blocks that its tokens fill behind the prompt's. */
export interface AnswerReader {
  /** Another endpoint answers anew. */
  reset(): void;
  /** An event with output, in bytes[start..end) of a stream of OpenAI's. */
  event(bytes: Buffer, start: number, end: number): void;
  /** An answer that came in one piece. */
  whole(body: Buffer): void;
  /** The answer is over, whole or left by its client: what the end of its request reports of it. */
  ended(requestId: string, usage: Usage | undefined): AnswerReport;
}

export type AnswerReport = Pick<RequestFinished, "answerHashes" | "answerFollows">;
