import type { Micros } from "#core/base/units.ts";
import type { ApiError } from "../http/api-error.ts";
import type { JsonObject } from "../http/body.ts";
import type { RemoteFetch } from "../kv-transfer/remote-fetch.ts";
import type { TransferRequest } from "../kv-transfer/transfer-request.ts";
import type { OutputPlan } from "./output-plan.ts";

export type SequenceEnd = "stop" | "length" | "abort";

/** The choices that one prompt of a client fans out to. Some metrics count them once. */
export interface SequenceGroup {
  readonly n: number;
  /** Choices that have not finished. */
  open: number;
  /** Tokens of the longest choice that has finished. */
  producedMax: number;
}

/** One request of the engine: one prompt and one answer to it. A request of a client fans out to prompts times n. */
export interface EmulatedSequence {
  /** Unique within the emulator. */
  readonly id: string;
  /** The `index` that the client sees. */
  readonly choice: number;
  readonly prompt: Int32Array;
  readonly plan: OutputPlan;
  /** Block hashes of prompt and planned answer, two words each. */
  readonly hashes: Int32Array;
  /** The ceiling that the client set, or the default. */
  readonly maxTokens: number;
  readonly group: SequenceGroup;
  /** LoRA adapter; "" for the base model. */
  readonly adapter: string;
  readonly cacheSalt: string;
  /** Lower runs earlier. */
  readonly priority: number;
  /** False where the whole prompt must be computed: for its own log probabilities. */
  readonly cacheRead: boolean;
  /** Tokens after which a fault ends it with "abort"; undefined without one. */
  readonly abortAfterTokens: number | undefined;
  /** What is asked of the KV connector; undefined for nothing, or without one. */
  readonly transfer: TransferRequest | undefined;
  /** Where its prompt's blocks come from, once it is known that they are there. */
  fetch: RemoteFetch | undefined;
  /** `kv_transfer_params` of its answer, where its blocks are held. */
  handedOver: JsonObject | undefined;
  /** Engine time of arrival; -1 before. */
  arrivedAt: Micros;
  /** Engine time at which it was first scheduled; -1 before. */
  scheduledAt: Micros;
  /** Engine time of the first token; -1 before. */
  firstTokenAt: Micros;
  lastTokenAt: Micros;
  /** Prompt tokens found in the prefix cache at admission. */
  cachedTokens: number;
  preemptions: number;
  /** Tokens computed so far. */
  produced: number;
  finish: SequenceEnd | undefined;
}

/** What never changes of a sequence. */
export type SequenceSpec = Pick<
  EmulatedSequence,
  | "id"
  | "choice"
  | "prompt"
  | "plan"
  | "hashes"
  | "maxTokens"
  | "group"
  | "adapter"
  | "cacheSalt"
  | "priority"
  | "cacheRead"
  | "abortAfterTokens"
  | "transfer"
>;

export function newSequence(spec: SequenceSpec): EmulatedSequence {
  const times = { arrivedAt: -1, scheduledAt: -1, firstTokenAt: -1, lastTokenAt: -1 };
  const connector = { fetch: undefined, handedOver: undefined };
  return { ...spec, ...times, ...connector, cachedTokens: 0, preemptions: 0, produced: 0, finish: undefined };
}

/** Where the tokens of a client's request go. */
export interface SequencesAnswer {
  readonly sequences: readonly EmulatedSequence[];
  /** False when only the end matters. */
  readonly everyToken: boolean;
  /** Some sequence has new tokens or has finished. */
  advance(): void;
  /** No sequence will go on. */
  fail(error: ApiError): void;
}

/** True when nothing of an answer is still being computed. */
export function isComplete(answer: SequencesAnswer): boolean {
  return answer.sequences.every((sequence) => sequence.finish !== undefined);
}

/** The text shown by tokens `from` (inclusive) to `to` (exclusive). */
export function textBetween(plan: OutputPlan, from: number, to: number): string {
  if (to - from === 1) return plan.texts[from] ?? "";
  return plan.texts.slice(from, to).join("");
}
