import type { Micros } from "#core/units.ts";
import { Judge } from "#core/rollout/judge/judge.ts";
import type { MeanEstimate } from "#core/rollout/judge/confidence-sequence.ts";
import type { RequestFinished } from "#core/input.ts";
import type { Times } from "#core/rollout/judge/outcome.ts";
import type { Design } from "#core/rollout/rollout-plan.ts";
import { judgeOptions, twoArmPlan } from "#shadow/rollout/two-arm-plan.ts";
import { TraceReader } from "#trace/reader.ts";

interface Begun {
  readonly at: Micros;
  readonly arm: number;
  readonly window: number;
  readonly cluster: string;
  readonly endpoint: string;
  readonly promptTokens: number;
  readonly predicted: Times | undefined;
  firstTokenAt: Micros | undefined;
}

/** As measured, and less what predictions of the control explain. */
type Measured = readonly [plain: MeanEstimate, adjusted: MeanEstimate];

export interface RecordedRollout {
  readonly ttft: Measured;
  readonly e2e: Measured;
  /** Requests that count, and those of them that failed. */
  readonly requests: number;
  readonly failed: number;
}

/**
 * What a live rollout measured, by the judge's own formulas, from the trace that its gateway wrote: the decisions name
 * arm and window. `predictionOf` has what the simulator predicts of the request at a place in the order of arrival.
 */
export async function recordedRollout(
  trace: string,
  design: Design,
  predictionOf: (place: number) => Times | undefined,
): Promise<RecordedRollout> {
  const plan = twoArmPlan(design, 0);
  const judge = new Judge(judgeOptions(plan, 0.05, 20));
  const open = new Map<string, Begun>();
  /** When the first request of a window came: close to its start. */
  const windowStarts = new Map<number, Micros>();
  let arrived = 0;
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind !== "record") continue;
    const { input, decision } = item;
    const place = input.kind === "request-arrived" ? arrived++ : 0;
    if (input.kind === "request-arrived" && decision?.rollout !== undefined && decision.rollout.window >= 0) {
      const { arm, window } = decision.rollout;
      const { id, session, promptTokens } = input.request;
      const startAt = windowStarts.get(window) ?? input.at;
      windowStarts.set(window, startAt);
      if (design.kind === "switchback" && input.at - startAt < design.washoutMicros) continue;
      judge.arrived(window, (window + 1) * design.windowMicros);
      const endpoint = decision.kind === "routed" ? decision.endpoint : "";
      const cluster = session === "" ? id : session;
      open.set(id, {
        at: input.at,
        arm: arm === plan.arms[0]!.name ? 0 : 1,
        window,
        cluster,
        endpoint,
        promptTokens,
        predicted: predictionOf(place),
        firstTokenAt: undefined,
      });
    } else if (input.kind === "first-token") {
      const begun = open.get(input.requestId);
      if (begun !== undefined) begun.firstTokenAt ??= input.at;
    } else if (input.kind === "request-finished") {
      const begun = open.get(input.requestId);
      open.delete(input.requestId);
      if (begun !== undefined) observe(judge, begun, input);
    }
  }
  judge.advance(Infinity);
  const ttft = judge.estimates(1, "ttft", "mean");
  const e2e = judge.estimates(1, "e2e", "mean");
  const sum = (of: "requests" | "failed") => judge.totals.reduce((all, { counts }) => all + counts[of], 0);
  return { ttft, e2e, requests: sum("requests"), failed: sum("failed") };
}

function observe(judge: Judge, begun: Begun, { at, outcome, cachedTokens }: RequestFinished): void {
  const { arm, window, cluster, endpoint, promptTokens, predicted, firstTokenAt } = begun;
  const isOk = outcome === "ok";
  judge.observe({
    arm,
    window,
    counted: true,
    stretch: window,
    slice: 0,
    cluster,
    status: isOk ? "ok" : "failed",
    times: {
      ttft: firstTokenAt === undefined ? undefined : firstTokenAt - begun.at,
      tpot: undefined,
      e2e: isOk ? at - begun.at : undefined,
    },
    ...(predicted && { predicted }),
    endpoint,
    promptTokens,
    cachedTokens,
  });
}
