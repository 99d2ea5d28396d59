import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { FaultEvent } from "../log/fault-log.ts";

/** What a worker sends to the thread that decides. */
export const MAIL = {
  arrived: 1,
  firstToken: 2,
  progress: 3,
  finished: 4,
  answerKnown: 5,
  summary: 6,
  retried: 7,
  fellBack: 8,
  refund: 9,
  note: 10,
  sweep: 11,
  afterFault: 12,
  afterBreak: 13,
  mayLeave: 14,
  otherInput: 15,
  again: 16,
  hedge: 17,
} as const;

/** What it gets back: a decision for a request that arrived, or the answer to the question that it waits for. */
export const REPLY = { decided: 1, defect: 2, after: 3, leave: 4, failed: 5, placed: 6 } as const;

/** What is rare, as JSON: an event for the log, a defect of the worker's, a profile that a client's header made. */
export type Note =
  | { readonly kind: "fault"; readonly event: FaultEvent }
  | { readonly kind: "bug"; readonly frames: string }
  | { readonly kind: "profile"; readonly name: string; readonly spec: ProfileSpec };
