import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { PolicyChanged } from "#core/input/input.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { decisionRegret, regretQuestions } from "#shadow/job/regret.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { FleetHistory } from "#shadow/recorded/fleet-history.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { RunBook } from "#shadow/recorded/recorded-run.ts";
import { Replay, routerOf } from "#shadow/recorded/replay.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { FleetState } from "#trace/transform/fleet-state.ts";
import { request } from "../../core/state.ts";
import { type Step, drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const spec = (name: string) => loadProfile(name).spec;
const specs = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, spec(name)]));
const changed = (at: number, version: number, profiles: PolicyChanged["profiles"], defaultProfile: string) =>
  ({ kind: "policy-changed", at, version, source: "admin", profiles, defaultProfile }) as const;

function headerOf(names: readonly string[], defaultProfile: string): TraceHeader {
  const router = { ...HEADER.router, profiles: specs(...names), defaultProfile, staleAfterMicros: 50_000 };
  return { ...HEADER, router: { ...router, policyVersion: 1 } };
}

/** A run whose policy changes now and then, as a recorder writes it; `strip` makes it one from before versions. */
function recorded(strip = false): TraceItem[] {
  const header = headerOf(["gnomon", "sticky"], "gnomon");
  const router = routerOf(header);
  const log: Step[] = drawTraffic(router, 3, 200);
  const at = log.at(-1)!.input.at;
  const sample = log.find(({ input }) => input.kind === "request-arrived");
  assert.ok(sample?.input.kind === "request-arrived");
  const take = (input: Parameters<typeof router.accept>[0]) => log.push({ input, decision: router.accept(input) });
  const policies = [specs("gnomon", "sticky"), specs("sticky", "llm-d"), { sticky: spec("lmetric") }, specs("sticky")];
  for (let i = 0; i < 60; i++) {
    if (i % 15 === 0) take(changed(at + i, 2 + i / 15, policies[i / 15]!, "sticky"));
    const asked = { ...sample.input.request, id: `again-${i}`, profile: "", session: `s${i % 4}` };
    take({ kind: "request-arrived", at: at + i, request: asked });
  }
  const encoder = new LineEncoder({ blockTokens: header.router.blockTokens });
  const plain = (line: string) => (strip ? line.replaceAll(/,?"policyVersion":\d+/g, "") : line);
  const decoder = new TraceDecoder(plain(encoder.header(header)));
  const records = log.map(({ input, decision }) => decoder.decode(plain(encoder.record(input, decision))));
  return [{ kind: "run", header: decoder.header }, ...records];
}

function replayed(items: readonly TraceItem[]) {
  const replay = new Replay();
  for (const item of items) replay.take(item);
  return replay.result();
}

test("a trace with policies that change replays alike, with state that profiles keep; one without versions does too", () => {
  const items = recorded();
  const versions = items.flatMap((item) => (item.kind === "record" ? (item.decision?.policyVersion ?? []) : []));
  assert.deepEqual([...new Set(versions)], [1, 2, 3, 4, 5]);
  const result = replayed(items);
  assert.deepEqual([result.differences, result.unverifiable], [0, 0], result.first?.what ?? result.reasons.join());
  assert.ok(result.decisions > 60);
  assert.equal(replayed(recorded(true)).differences, 0);
  const lost = items.filter((item) => item.kind !== "record" || item.input.kind !== "policy-changed");
  assert.match(replayed(lost).first?.what ?? "", /profile|policyVersion/);
});

test("another version alone is a difference, and a policy of another gnomon ends the comparison with its reason", () => {
  const items = recorded().map((item) =>
    item.kind === "record" && item.input.kind === "policy-changed"
      ? { ...item, input: { ...item.input, version: item.input.version + 1 } }
      : item,
  );
  assert.match(replayed(items).first?.what ?? "", /^policyVersion: 2 recorded, 3 replayed$/);
  const foreign = recorded().map((item) => {
    if (item.kind !== "record" || item.input.kind !== "policy-changed") return item;
    const profiles = { sticky: { ...spec("sticky"), picker: { plugin: "oracle", parameters: {} } } };
    return { ...item, input: { ...item.input, profiles } };
  });
  const result = replayed(foreign);
  assert.ok(result.unverifiable >= 60);
  assert.match(result.reasons.join(), /profile sticky is not one of this version: picker\.plugin/);
});

test("headers behind a change state the policy in force", () => {
  const change = changed(5, 7, specs("llm-d"), "llm-d");
  const state = new FleetState(HEADER);
  state.take(change);
  const history = new FleetHistory(Infinity);
  for (const event of [{ kind: "profile-changed", at: 1, name: "x", profile: spec("sticky") } as const, change]) {
    history.stand(event);
  }
  for (const { router } of [state.header(1), history.header(HEADER)]) {
    assert.deepEqual([router.policyVersion, router.defaultProfile], [7, "llm-d"]);
    assert.deepEqual(Object.keys(router.profiles), ["llm-d"]);
  }
});

test("a window's policy is that of its beginning; changes in it have their time", () => {
  const book = new RunBook();
  book.take(changed(1, 2, specs("llm-d"), "llm-d"), undefined);
  book.take({ kind: "request-arrived", at: 100, request: request({ id: "r" }) }, "a");
  book.take(changed(150, 3, specs("sticky"), "sticky"), undefined);
  const run = book.close(HEADER);
  assert.equal(run.header.router.defaultProfile, "llm-d");
  assert.deepEqual(
    run.fleetEvents.map(({ kind, at }) => [kind, at]),
    [["policy-changed", 50]],
  );
  const inForce = inForceOf(run.header, run.fleetEvents);
  assert.equal(inForce.name, "as recorded (llm-d, sticky; 1 change)");
  assert.deepEqual(inForce.asRecorded, { profiles: specs("llm-d"), defaultProfile: "llm-d" });
});

test("a change that leaves the default profile as it was is no other policy in force", () => {
  const header = headerOf(["gnomon"], "gnomon");
  const inForce = inForceOf(header, [changed(9, 2, specs("gnomon", "sticky"), "gnomon")]);
  assert.deepEqual([inForce.name, inForce.asRecorded], ["gnomon", undefined]);
  const broken = { gnomon: { ...spec("gnomon"), picker: { plugin: "oracle", parameters: {} } } };
  assert.throws(() => inForceOf(header, [changed(9, 2, broken, "gnomon")]), /none of this version: picker\.plugin/);
});

test("what-if follows the policies that were in force at their time, and other candidates stay what they are", async () => {
  const workload = caseWorkload().slice(0, 160);
  const half = workload.map(({ arrivalMicros }) => arrivalMicros).toSorted((a, b) => a - b)[80]!;
  const header = headerOf(["round-robin"], "round-robin");
  const fleetEvents = [changed(half, 2, specs("always-busiest"), "always-busiest")];
  const setting = { ...caseSetting(workload), fleetEvents };
  const inForce = inForceOf(header, fleetEvents);
  const decided = { before: new Map<string, number>(), after: new Map<string, number>() };
  const outcome = runCandidate(setting, inForce, {
    watch: (_, decision) => {
      const counts = decision.at <= half ? decided.before : decided.after;
      counts.set(decision.profile, (counts.get(decision.profile) ?? 0) + 1);
    },
  });
  assert.deepEqual([...decided.before.keys(), ...decided.after.keys()], ["round-robin", "always-busiest"]);
  const alone = (name: string) => runCandidate({ ...setting, fleetEvents: [] }, namedProfile(name));
  const mean = (values: Float64Array) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [best, worst] = [mean(alone("round-robin").e2eMicros), mean(alone("always-busiest").e2eMicros)];
  assert.ok(best < mean(outcome.e2eMicros) && mean(outcome.e2eMicros) < worst);
  assert.deepEqual(runCandidate(setting, namedProfile("round-robin")).e2eMicros, alone("round-robin").e2eMicros);
  const answer = await whatIf({
    setting,
    inForce,
    candidates: [namedProfile("round-robin"), namedProfile("always-busiest")],
    observed: undefined,
    threadsMax: 1,
  });
  assert.equal(answer.inForce, "as recorded (round-robin, always-busiest; 1 change)");
  assert.deepEqual(
    answer.candidates.map(({ name }) => name),
    ["round-robin", answer.inForce, "always-busiest"],
  );
  const late = regretQuestions(inForce, outcome, 4, 1, 1).at(-1)!;
  assert.equal(decisionRegret(setting, late)?.chosen !== undefined, true);
});
