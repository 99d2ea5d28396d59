import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ROLLOUT_SCHEMA } from "#config/rollout-section.ts";
import type { RolloutReply } from "#live/admin/rollout-admin.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { Autopilot, type AutopilotOptions } from "#serve/autopilot/autopilot.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import type { TuneVerdict } from "#shadow/tune/verdict.ts";

const GAIN = { value: 0.1, low: 0.05, high: 0.15, units: 40, chance: 0.001 };

/** What a search came to, as far as the autopilot reads it. */
function found(profile: string, kind: TuneVerdict["kind"] = "better", gain = GAIN): TuneAnswer {
  return {
    verdict: { kind, reasons: [`${kind} for a reason`] },
    inForce: "llm-d",
    objective: { kind: "time", metric: "e2eMicros", figure: "mean" },
    split: { heldOutSessions: 40 },
    winner: { candidate: { name: "tuned-1-1", spec: loadProfile(profile).spec } },
    heldOut: { gain, before: 2_000_000 },
  } as unknown as TuneAnswer;
}

function admin(more: Partial<AutopilotOptions> = {}) {
  const policy = { version: 7, profile: "llm-d" };
  const added: string[] = [];
  const started: unknown[] = [];
  const phases: string[] = [];
  const clock = { at: Date.UTC(2026, 0, 1) };
  const autopilot = new Autopilot({
    start: "ask",
    objective: "e2e-mean",
    gainMin: 0.03,
    proposalsMax: 3,
    startsPerDayMax: 1,
    windowMillis: 60_000,
    policy: () => ({ ...policy }),
    addProfile: (name) => {
      added.push(name);
      policy.version++;
      return [];
    },
    rollouts: {
      view: () => ({ at: "", rollouts: phases.map((phase) => ({ phase }) as RolloutView) }),
      start: (document): Promise<RolloutReply> => {
        started.push(document);
        return Promise.resolve({ outcome: "applied", rollout: {} as RolloutView, unkept: [] });
      },
    },
    report: () => {},
    now: () => new Date(clock.at),
    ...more,
  });
  const states = () => autopilot.view().proposals.map(({ state }) => state);
  return { autopilot, policy, added, started, phases, clock, states };
}

test("a proposal waits for a yes, which adds its profile and starts a rollout with what was predicted", async () => {
  const { autopilot, added, started } = admin();
  await autopilot.take(found("gnomon"));
  const [proposal] = autopilot.view().proposals;
  assert.ok(proposal !== undefined);
  assert.deepEqual([proposal.state, started.length], ["waiting", 0]);
  const outcome = await autopilot.accept(proposal.name, "me");
  assert.equal(outcome.outcome, "applied");
  assert.deepEqual(added, [proposal.name]);
  const document = ROLLOUT_SCHEMA.parse(started[0]);
  assert.equal(document.arms[1]?.profile, proposal.name);
  assert.deepEqual(document.predictions, [
    { arm: "other", metric: "e2e", figure: "mean", lowMillis: -300, highMillis: -100 },
  ]);
  assert.equal((await autopilot.accept(proposal.name, "me")).outcome, "refused", "once");
  assert.deepEqual([autopilot.view().started, autopilot.view().proposals[0]?.by], [1, "me"]);
});

test("what is no better is counted with its reason, and proposes nothing", async () => {
  const { autopilot, policy } = admin({ start: "alone" });
  for (const kind of ["uncertain", "nothing", "refused"] as const) await autopilot.take(found("gnomon", kind));
  policy.profile = "gnomon";
  await autopilot.take(found("unified"));
  const { searches, proposals, latest } = autopilot.view();
  assert.deepEqual(searches, { better: 0, uncertain: 1, nothing: 1, refused: 1, outdated: 1 });
  assert.deepEqual(proposals, []);
  assert.match(latest, /the policy was llm-d's when the traffic came, and is gnomon's now/);
});

test("a later proposal takes an earlier one's place; one that was declined does not come again; few are kept", async () => {
  const { autopilot, states, policy } = admin();
  await autopilot.take(found("gnomon"));
  await autopilot.take(found("unified"));
  assert.deepEqual(states(), ["waiting", "replaced"]);
  const { name } = autopilot.view().proposals[0]!;
  assert.equal(autopilot.decline(name, "me").outcome, "applied");
  await autopilot.take(found("unified"));
  assert.deepEqual(states(), ["declined", "replaced"]);
  for (const one of ["lmetric", "sticky", "preble"]) await autopilot.take(found(one));
  assert.deepEqual(states(), ["waiting", "replaced", "replaced"]);
  policy.version++;
  const [latest] = autopilot.view().proposals;
  assert.equal(latest?.state, "outdated", "it was compared with another policy");
  assert.equal((await autopilot.accept(latest.name, "me")).outcome, "refused");
});

test("alone it starts what is surely better, one a day, and nothing while a rollout is under way", async () => {
  const { autopilot, started, phases, clock, states } = admin({ start: "alone" });
  phases.push("running");
  await autopilot.take(found("gnomon"));
  assert.deepEqual(states(), ["waiting"]);
  phases[0] = "rolled-back";
  await autopilot.take(found("unified", "better", { ...GAIN, low: 0.01 }));
  assert.equal(started.length, 0, "its interval begins below what is worth it");
  await autopilot.take(found("lmetric"));
  assert.equal(started.length, 1);
  assert.equal(autopilot.view().proposals[0]?.by, "autopilot");
  await autopilot.take(found("sticky"));
  assert.equal(started.length, 1, "one a day");
  clock.at += 86_400_001;
  await autopilot.take(found("preble"));
  assert.equal(started.length, 2);
});

test("a rollout that cannot start leaves the policy, and the proposal has the reason", async () => {
  const refusing = {
    rollouts: {
      view: () => ({ at: "", rollouts: [] }),
      start: (): Promise<RolloutReply> =>
        Promise.resolve({ outcome: "refused", problems: ["another one is under way"] }),
    },
  };
  const { autopilot } = admin(refusing);
  await autopilot.take(found("gnomon"));
  const { name } = autopilot.view().proposals[0]!;
  assert.deepEqual(await autopilot.accept(name, "me"), { outcome: "refused", problems: ["another one is under way"] });
  const [proposal] = autopilot.view().proposals;
  assert.deepEqual([proposal?.state, proposal?.detail], ["refused", "another one is under way"]);
});
