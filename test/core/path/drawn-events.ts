import fc from "fast-check";

import type { Fault } from "#core/endpoint/fault.ts";
import type { PathEvent } from "#core/path/path-event.ts";
import type { Carriage, Content, PathState } from "#core/path/path-state.ts";

const FAULTS: readonly Fault[] = ["connect", "status", "saturated", "draining", "cut", "timeout", "garbage", "hung"];
const CARRIAGES: readonly Carriage[] = ["stream", "whole", "through"];
const CONTENTS: readonly Content[] = ["silent", "due", "token", "complete", "turned-down"];
const BOTH = [false, true] as const;

/** Every event there is, with everything that it may carry. */
export const EVENTS: readonly PathEvent[] = [
  ...(
    [
      "body-read",
      "arrived",
      "ahead-done",
      "first-token",
      "hold-full",
      "first-bytes",
      "let-through",
      "hold-over",
      "engine-error",
      "timed-out",
      "client-left",
      "client-stalled",
      "defect",
    ] as const
  ).map((kind) => ({ kind })),
  ...(["routed", "rerouted"] as const).flatMap((kind) => BOTH.map((ahead) => ({ kind, ahead }) as const)),
  ...(["standby", "anew"] as const).map((by) => ({ kind: "replaced", by }) as const),
  ...(["refused", "timeout"] as const).map((outcome) => ({ kind: "refused", outcome }) as const),
  ...CARRIAGES.map((carriage) => ({ kind: "answer-began", carriage }) as const),
  ...FAULTS.flatMap((fault) => BOTH.map((kept) => ({ kind: "attempt-failed", fault, kept }) as const)),
  ...(["ok", "refused"] as const).map((outcome) => ({ kind: "marked", outcome }) as const),
  ...(["ok", "refused"] as const).flatMap((outcome) =>
    BOTH.map((promisesMark) => ({ kind: "answer-ended", outcome, promisesMark }) as const),
  ),
  ...FAULTS.flatMap((fault) => BOTH.map((continues) => ({ kind: "upstream-broke", fault, continues }) as const)),
  ...(["time", "attempts", "budget", "no-endpoint"] as const).map((why) => ({ kind: "denied", why }) as const),
];

/** Every state there is, at its second attempt where it has one. */
export const STATES: readonly PathState[] = [
  { kind: "reading", attempts: 0 },
  { kind: "preparing", attempts: 0 },
  { kind: "deciding", attempts: 0 },
  ...BOTH.map((shown) => ({ kind: "ahead", attempts: 2, shown }) as const),
  ...BOTH.map((shown) => ({ kind: "waiting", attempts: 2, shown }) as const),
  ...BOTH.flatMap((shown) =>
    CARRIAGES.flatMap((carriage) =>
      CONTENTS.map((content) => ({ kind: "holding", attempts: 2, shown, carriage, content }) as const),
    ),
  ),
  ...CARRIAGES.flatMap((carriage) =>
    CONTENTS.map((content) => ({ kind: "passing", attempts: 2, carriage, content }) as const),
  ),
  ...FAULTS.flatMap((fault) =>
    BOTH.flatMap((shown) => BOTH.map((kept) => ({ kind: "failed", attempts: 2, fault, shown, kept }) as const)),
  ),
  ...FAULTS.map((fault) => ({ kind: "severed", attempts: 2, fault }) as const),
  ...(["silent", "token"] as const).map((content) => ({ kind: "resuming", attempts: 2, content }) as const),
  ...(["ended", "closed"] as const).flatMap((kind) =>
    (["ok", "failed", "aborted", "timeout", "refused"] as const).map(
      (outcome) => ({ kind, attempts: 2, outcome }) as const,
    ),
  ),
];

/** The way that most requests go, of which drawn sequences follow a part, so that they come to every state. */
const BEATEN: readonly PathEvent["kind"][] = [
  "body-read",
  "arrived",
  "routed",
  "ahead-done",
  "answer-began",
  "first-token",
  "first-bytes",
  "marked",
  "answer-ended",
];

const eventOf = (kinds: readonly PathEvent["kind"][]) =>
  fc.constantFrom(...EVENTS.filter(({ kind }) => kinds.includes(kind)));

/** Steps of the beaten way, each with whatever else may come between. */
export const SEQUENCES: fc.Arbitrary<readonly PathEvent[]> = fc
  .tuple(
    ...BEATEN.map((kind) =>
      fc.tuple(
        fc.array(fc.constantFrom(...EVENTS.filter((one) => one.kind !== "client-left")), { maxLength: 1 }),
        fc.option(eventOf([kind]), { freq: 12 }),
      ),
    ),
    fc.tuple(fc.array(fc.constantFrom(...EVENTS), { maxLength: 12 }), fc.constant(null)),
  )
  .map((parts) => parts.flatMap(([between, step]) => [...between, ...(step === null ? [] : [step])]));
