import assert from "node:assert/strict";
import { test } from "node:test";
import { ROLLOUT_SCHEMA } from "#config/rollout-section.ts";
import type { RolloutReply } from "#live/admin/rollout-admin.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { Autopilot } from "#serve/autopilot/autopilot.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { simulate } from "#sim/simulate.ts";
import { NO_LATENCY } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import { CASE_ENGINE, CASE_SIGNALS, caseEndpoints, namedProfile } from "../../shadow/question/what-if-case.ts";
import { conversationsOf, MEAN_E2E } from "../../shadow/tune/tune-case.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const IN_FORCE = "always-busiest";

/** Lines of a trace as a gateway under always-busiest records it, of so many conversations. */
function lines(conversations: number): string {
  const router = {
    seed: 9,
    profiles: { [IN_FORCE]: namedProfile(IN_FORCE).spec },
    defaultProfile: IN_FORCE,
    blockTokens: 16,
    staleAfterMicros: 2_000_000,
  };
  const encoder = new LineEncoder({ blockTokens: 16 });
  const text = [encoder.header({ ...HEADER, router: { ...router, breaker: undefined } })];
  simulate({
    router,
    engines: caseEndpoints("a", "b", "c").map((endpoint) => ({
      endpoint: { ...endpoint, kvCapacityTokens: 1999 * 16, concurrencyMax: 256 },
      config: CASE_ENGINE,
    })),
    arrivals: new WorkloadArrivals(conversationsOf(conversations, 14, 3), {
      seed: 9,
      blockTokens: 16,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: 1,
    }),
    signals: CASE_SIGNALS,
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: false,
    observe: (input, decision) => text.push(encoder.record(input, decision)),
  });
  return `${text.join("\n")}\n`;
}

/** What a shadow beside such a gateway comes to, of a search with few candidates. */
async function searched(conversations: number): Promise<TuneAnswer> {
  const text = lines(conversations);
  let host: ShadowHost | undefined;
  try {
    return await new Promise<TuneAnswer>((resolve, reject) => {
      host = new ShadowHost({
        work: {
          engine: CASE_ENGINE,
          calibrate: undefined,
          candidates: [],
          intervalMillis: 3_600_000,
          predictMillis: 3_600_000,
          windowRequests: 1_000,
          requestsMin: 20,
          cpuShareMax: 1,
          scrapeMillis: 500,
          tune: {
            intervalMillis: 10,
            objective: MEAN_E2E,
            bases: ["gnomon", "round-robin"].map(namedProfile),
            scorers: [],
            trialsMax: 12,
            budgetMillis: 3_600_000,
            gainMin: 0.03,
          },
        },
        heapMegabytesMax: 256,
        taken: () => {},
        predicted: () => {},
        tuned: resolve,
        restarted: () => {},
        failed: (detail) => reject(new Error(detail)),
      });
      host.send(Buffer.from(new TextEncoder().encode(text).buffer));
    });
  } finally {
    await host?.close();
  }
}

test("the shadow finds a better policy in what a gateway recorded, and with a yes it becomes a guarded rollout with what was predicted", async () => {
  const answer = await searched(120);
  const added: string[] = [];
  const started: unknown[] = [];
  const autopilot = new Autopilot({
    start: "ask",
    objective: "e2e-mean",
    gainMin: 0.03,
    proposalsMax: 3,
    startsPerDayMax: 1,
    windowMillis: 60_000,
    policy: () => ({ version: 1, profile: IN_FORCE }),
    addProfile: (name) => {
      added.push(name);
      return [];
    },
    rollouts: {
      view: () => ({ at: "", rollouts: [] }),
      start: (document): Promise<RolloutReply> => {
        started.push(document);
        return Promise.resolve({ outcome: "applied", rollout: {} as RolloutView, unkept: [] });
      },
    },
    report: () => {},
    now: () => new Date(0),
  });
  await autopilot.take(answer);
  const [proposal] = autopilot.view().proposals;
  assert.equal(proposal?.state, "waiting", answer.verdict.reasons.join("; "));
  assert.ok(proposal.gainLow > 0 && proposal.sessions >= 8);
  assert.equal(started.length, 0);
  assert.equal((await autopilot.accept(proposal.name, "me")).outcome, "applied");
  assert.deepEqual(added, [proposal.name]);
  const { arms, guardrails, predictions, design } = ROLLOUT_SCHEMA.parse(started[0]);
  assert.equal(arms[1]?.profile, proposal.name);
  assert.equal(design.kind, "switchback");
  assert.equal(guardrails, undefined, "those that every rollout has");
  assert.ok(predictions[0]!.highMillis < 0);
});

test("on little traffic it has a reason in place of a proposal", async () => {
  const { verdict } = await searched(12);
  assert.equal(verdict.kind, "refused");
  assert.match(verdict.reasons.join("; "), /too short: \d+ conversations/);
});
