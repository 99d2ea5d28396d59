import type { Answer, AnswerCounts, AnswerHead, Delivery } from "../answer/answer.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import { faultOfStatus, isFailedStatus } from "../answer/faults.ts";
import { scanFinishReasons, findUsage } from "../answer/answer-json.ts";
import { type Fields, isFields } from "../base/fields.ts";
import { withFields } from "../http/request-body.ts";
import { randomInt } from "node:crypto";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";

/** Fields that an engine may refuse in an answer of one token that does not stream. */
const OVERRIDDEN: Readonly<Record<string, unknown>> = {
  stream_options: null,
  max_completion_tokens: 1,
  min_tokens: 1,
  return_token_ids: false,
};

/** What vLLM's connectors take from a request whose blocks another engine will fetch. */
const FOR_REMOTE_DECODE = {
  do_remote_decode: true,
  do_remote_prefill: false,
  remote_engine_id: null,
  remote_block_ids: null,
  remote_host: null,
  remote_port: null,
} as const;

/**
 * The body of a chat or a completion as the endpoint gets it that computes its prompt: one token, in one piece. `more` in
 * place of the fields of vLLM's connectors, where the endpoints find each other by others.
 */
export function prefillBody(body: Buffer, more: Fields = { kv_transfer_params: FOR_REMOTE_DECODE }): Buffer {
  const parsed: unknown = JSON.parse(body.toString());
  const given = isFields(parsed) ? parsed : {};
  const overridden = Object.fromEntries(Object.entries(OVERRIDDEN).filter(([name]) => (given[name] ?? null) !== null));
  return withFields(body, { ...overridden, max_tokens: 1, stream: false, ...more });
}

/** The body as the endpoint gets it that answers, with what the first one returned, or by what it finds that one. */
export function answerBody(body: Buffer, { transfer, bootstrap }: { transfer?: unknown; bootstrap?: Fields }): Buffer {
  if (bootstrap !== undefined) return withFields(body, bootstrap);
  return transfer === undefined ? body : withFields(body, { kv_transfer_params: transfer });
}

/** Label with the port at which an engine that computes prompts is met by the others. */
const BOOTSTRAP_PORT_LABEL = "gnomon/bootstrap-port";
/** SGLang's. */
const BOOTSTRAP_PORT = 8998;
/** Rooms are numbers that JSON keeps exact. */
const ROOMS = 2 ** 47;

/**
 * By what two engines that get a request at once find each other, as SGLang's do: where the first one waits, and a
 * room.
 */
export function bootstrapFields({ url, labels }: Pick<EndpointEntry, "url" | "labels">): Fields {
  const port = Number(labels?.[BOOTSTRAP_PORT_LABEL] ?? BOOTSTRAP_PORT);
  return {
    bootstrap_host: new URL(url).hostname,
    bootstrap_port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : BOOTSTRAP_PORT,
    bootstrap_room: randomInt(ROOMS),
  };
}

/** Reads the answer of the endpoint that computes a prompt; its one token is not for the client. */
export class PrefillAnswer implements Answer {
  readonly carriage = "whole";
  readonly #delivery: Delivery;
  readonly #head: AnswerHead;
  readonly #prefilled: (prefilled: Prefilled) => void;
  readonly #bytesMax: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  constructor(delivery: Delivery, head: AnswerHead, prefilled: (prefilled: Prefilled) => void) {
    this.#delivery = delivery;
    this.#head = head;
    this.#prefilled = prefilled;
    const { answerBytesInspected, errorBytesKept } = delivery.limits;
    this.#bytesMax = isFailedStatus(head.status) ? errorBytesKept : answerBytesInspected;
  }

  data(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) this.#delivery.attemptFailed("garbage");
  }

  ended(): void {
    const body = Buffer.concat(this.#chunks, this.#bytes);
    const prefilled = readPrefilled(this.#head.status, body);
    if (typeof prefilled !== "string") return this.#prefilled(prefilled);
    const isError = isFailedStatus(this.#head.status);
    this.#delivery.attemptFailed(prefilled, isError ? { ...this.#head, body } : undefined);
  }

  /** Nothing of it goes out. */
  showHead(): void {}

  writeHeld(): void {}

  counts(): AnswerCounts {
    return { usage: undefined, tokensSeen: undefined };
  }
}

/** What an endpoint returned that computed a prompt. */
export interface Prefilled {
  /** For the endpoint that answers (`kv_transfer_params`); undefined where there is nothing to hand on. */
  readonly transfer: unknown;
  /** Prompt tokens that it found in its cache. */
  readonly cachedTokens: number | undefined;
}

/** Its whole answer, of status 200 or of a failure, or what it failed by. */
export function readPrefilled(status: number, body: Buffer): Prefilled | Fault {
  if (isFailedStatus(status)) return faultOfStatus(status, body);
  const answer = fieldsOf(body);
  if (answer === undefined) return "garbage";
  if (scanFinishReasons(body, 0, body.length) === "abort") return "draining";
  return { transfer: answer["kv_transfer_params"] ?? undefined, cachedTokens: findUsage(body)?.cachedTokens };
}

function fieldsOf(body: Buffer): Fields | undefined {
  try {
    const answer: unknown = JSON.parse(body.toString());
    return isFields(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
}
