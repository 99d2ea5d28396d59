import type { Routed } from "../../input/decision.ts";
import type { Fault } from "../../endpoint/fault.ts";
import type { RequestContinued } from "../../request/continued-input.ts";
import type { PathEvent } from "../path-event.ts";
import type { GiveUpReason, PathRouter } from "../path-router.ts";
import type { PathStage } from "../stage.ts";
import type { StageKind, StageTerms } from "../stage-kind.ts";

const MIB = 1024 * 1024;
const TIMES_USUAL = 8;

/** How often a stream may go on, and what is kept of all of them for it. */
export class ContinuationBounds {
  readonly #terms: StageTerms;
  /** What the tokens kept of all streams take. */
  keptBytes = 0;

  constructor(terms: StageTerms) {
    this.#terms = terms;
  }

  get timesMax(): number {
    return this.#terms.settings["continuationsMax"] ?? TIMES_USUAL;
  }

  /** So many bytes more are kept, or fewer where negative; false where they would be more than `bytesMax`. */
  hold(bytes: number, bytesMax: number): boolean {
    if (bytes > 0 && this.keptBytes + bytes > bytesMax) return false;
    this.keptBytes += bytes;
    return true;
  }
}

/** A stream whose endpoint breaks goes on at another one, behind what its client has. */
export const CONTINUATION = {
  name: "continuation",
  settings: {
    continuationsMax: {
      kind: "count",
      min: 0,
      max: 64,
      usual: TIMES_USUAL,
      meaning: "How often one stream may continue at another endpoint after its own broke; 0 cuts it.",
    },
    continuationTokensKept: {
      kind: "count",
      min: 0,
      max: 1_000_000,
      usual: 32_768,
      isOfGateway: true,
      meaning:
        "Tokens of prompt and answer kept of one stream, so that it can continue elsewhere; a longer stream is cut if it breaks.",
    },
    continuationBytesKept: {
      kind: "count",
      min: 1024,
      max: 1024 * 1024 * MIB,
      usual: 256 * MIB,
      isOfGateway: true,
      meaning:
        "Bytes that the kept tokens of all streams may take; a stream for which there is no room is cut if it breaks.",
    },
  },
  counts: {
    continuations: {
      label: "fault",
      metric: "streams_continued_total",
      meaning: "Streams continued at another endpoint, by fault.",
      row: "continued",
      total: "answers continued",
    },
    continuationsByText: {
      label: "fault",
      metric: "streams_continued_by_text_total",
      meaning:
        "Streams continued at another endpoint from their text, because the engine sends no token ids; the result may not be exact; by fault.",
    },
    continuationsDenied: {
      label: "reason",
      metric: "streams_not_continued_total",
      meaning: "Streams cut instead of continued, by reason.",
    },
    continuationTokens: {
      metric: "continuation_tokens_total",
      meaning: "Tokens sent as prompts to endpoints that continued a stream.",
    },
  },
  open: (terms: StageTerms): ContinuationBounds => new ContinuationBounds(terms),
} as const satisfies StageKind<ContinuationBounds>;

/** What the router gets to know of an answer that broke, beside what the path knows itself. */
export type BrokenPart = Omit<RequestContinued, "kind" | "at" | "requestId" | "fault">;

/** What a host does with an answer that goes on elsewhere. */
export interface ContinuationHost {
  readonly router: PathRouter;
  /** As the router knows the request. */
  readonly routeId: string;
  /** What there is of the answer; undefined where it cannot go on, which the host counts. */
  broken(): BrokenPart | undefined;
  /** It goes on there: what follows, "later" where that event comes once the endpoint was asked something. */
  goOn(decision: Routed, fault: Fault): PathEvent | "later";
  /** For the counts: it is sent there, or it does not go on. */
  wentOn(fault: Fault): void;
  denied(why: GiveUpReason): void;
}

/** An answer of which the client has a part and that breaks: where it goes on, and how often it did. */
export class Continuation implements PathStage {
  readonly #host: ContinuationHost;
  /** Times that it went on elsewhere. */
  times = 0;

  constructor(host: ContinuationHost) {
    this.#host = host;
  }

  get timesMax(): number {
    return this.#host.router.sharedOf(CONTINUATION).timesMax;
  }

  /** It is paid for as a retry is, and gets that back with its first token. */
  goesOn(fault: Fault): PathEvent | "later" {
    const host = this.#host;
    const { router, routeId: requestId } = host;
    const broken = host.broken();
    if (broken === undefined) return { kind: "denied", why: "no-endpoint" };
    const denied = router.denial(requestId, { fault, times: this.times, timesMax: this.timesMax });
    const input = { kind: "request-continued", at: router.now(), requestId, fault, ...broken } as const;
    const next = router.afterBreak(input, fault, denied);
    if (next.kind === "give-up") {
      host.denied(next.why);
      return { kind: "denied", why: next.why };
    }
    this.times++;
    return host.goOn(next.decision, fault);
  }

  wentOn(fault: Fault): void {
    this.#host.wentOn(fault);
  }

  /** What makes progress costs nothing. */
  firstToken(): void {
    if (this.times > 0) this.#host.router.refund();
  }
}
