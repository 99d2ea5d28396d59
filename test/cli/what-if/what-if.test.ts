import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { randomFor } from "#core/base/random.ts";
import type { CandidateAnswer, WhatIfAnswer } from "#shadow/question/what-if.ts";
import { simulateCommand } from "#cli/simulate/simulate.ts";
import { whatIfScreen } from "#cli/what-if/what-if-screen.ts";
import { whatIfTable } from "#cli/what-if/what-if-table.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-what-if-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const WORKLOAD = join(FOLDER, "workload.jsonl");
writeFileSync(WORKLOAD, mooncake(160));

/** A recorded workload without times of its own: lengths and shared blocks. */
function mooncake(requests: number): string {
  const random = randomFor(3, 1);
  let timestamp = 0;
  const lines = Array.from({ length: requests }, (_, i) => {
    timestamp += random.below(120);
    const length = 600 + random.below(400);
    const hash_ids = [random.below(6), 1000 + i];
    return JSON.stringify({ timestamp, input_length: length, output_length: 5 + random.below(60), hash_ids });
  });
  return `${lines.join("\n")}\n`;
}

const ask = (t: TestContext, ...flags: string[]) =>
  inProcess(t, [whatIfCommand()], ["what-if", WORKLOAD, "--threads", "1", ...flags]);

async function answerTo(t: TestContext, ...flags: string[]): Promise<WhatIfAnswer> {
  const { out } = await ask(t, "--json", "-", ...flags);
  return JSON.parse(out) as WhatIfAnswer;
}

test("the first fleet and rate of a foreign workload are its own, further ones are scenarios of every profile", async (t) => {
  const flags = ["--profile", "round-robin", "--endpoints", "2,3", "--rate-scale", "1", "--rate-scale", "2"];
  const { candidates, ranking } = await answerTo(t, ...flags);
  assert.deepEqual(candidates.map(({ name }) => name).toSorted(), [
    "gnomon",
    "gnomon, 2 x the rate",
    "gnomon, 3 endpoints",
    "round-robin",
    "round-robin, 2 x the rate",
    "round-robin, 3 endpoints",
  ]);
  assert.equal(ranking.first.length, 2, "only what was is ranked");
  assert.ok(candidates.every(({ completed }) => completed === 160));
  const plain = await answerTo(t, "--profile", "round-robin", "--endpoints", "2");
  assert.deepEqual(candidates.slice(0, 2), plain.candidates);
});

test("twice the rate is what the same requests in half of the time are, whether it is how things were or a scenario", async (t) => {
  const twice = join(FOLDER, "twice.jsonl");
  const lines = readFileSync(WORKLOAD, "utf8").trimEnd().split("\n");
  const halved = lines.map((line) => {
    const request = JSON.parse(line) as { readonly timestamp: number };
    return JSON.stringify({ ...request, timestamp: request.timestamp / 2 });
  });
  writeFileSync(twice, `${halved.join("\n")}\n`);
  const flags = ["--profile", "round-robin", "--endpoints", "2"];
  const predictedIn = ({ candidates }: WhatIfAnswer, suffix: string) =>
    ["gnomon", "round-robin"].map((name) => candidates.find((one) => one.name === `${name}${suffix}`)!.predicted);
  const { out } = await inProcess(t, [whatIfCommand()], ["what-if", twice, "--threads", "1", "--json", "-", ...flags]);
  const inHalf = predictedIn(JSON.parse(out) as WhatIfAnswer, "");
  assert.deepEqual(predictedIn(await answerTo(t, ...flags, "--rate-scale", "2"), ""), inHalf);
  const both = await answerTo(t, ...flags, "--rate-scale", "1", "--rate-scale", "2");
  assert.deepEqual(predictedIn(both, ", 2 x the rate"), inHalf);
  assert.notDeepEqual(predictedIn(both, ""), inHalf);
});

test("the terminal gets the verdict first, and no line that is longer than 100 characters", async (t) => {
  const asked = [
    "--profile",
    "round-robin",
    "--profile",
    "llm-d",
    "--step-error",
    "0.05",
    "--replicas",
    "3",
    "--regret",
    "3",
  ];
  const { out, notes } = await ask(t, ...asked, "--endpoints", "2,3", "--rate-scale", "1,2");
  assert.match(
    out,
    /^(?:No candidate|gnomon stays|round-robin|llm-d)[^]*?\bTTFT\b[^]*?\n\n160 requests; in force: gnomon/,
  );
  assert.match(out, /a\s+guess/);
  assert.match(notes, /emulated-default, which is a guess/);
  const long = out.split("\n").filter((line) => line.length > 100);
  assert.deepEqual(long, []);
  assert.match(out, /Regret by outcome/);
});

test("intervals come with a stated step error, and their absence is reported", async (t) => {
  const without = await ask(t);
  assert.match(without.notes, /no prediction intervals: the engine emulated-default does not state how far/);
  const { replicas, candidates } = await answerTo(t, "--step-error", "0.05");
  assert.equal(replicas, 40);
  const { low, high } = candidates[0]!.intervals.e2eMicros!.mean;
  assert.ok(low < high);
  assert.equal((await answerTo(t, "--step-error", "0.05", "--replicas", "0")).replicas, 0);
});

test("means that do not subtract to the differences below them stand with the reason", async (t) => {
  const answer = await answerTo(t, "--profile", "round-robin");
  const said = /do not subtract to these: they include first tokens that are late/;
  assert.doesNotMatch(whatIfTable(answer, {}).replaceAll("\n", " "), said);
  const [first, ...others] = answer.candidates as [CandidateAnswer, ...CandidateAnswer[]];
  const ttftMicros = { ...first.predicted.ttftMicros!, mean: first.predicted.ttftMicros!.mean + 400 };
  const late = { ...first, predicted: { ...first.predicted, ttftMicros } };
  const table = whatIfTable({ ...answer, candidates: [late, ...others] }, {});
  assert.match(table.replaceAll("\n", " "), said);
  const screen = (one: WhatIfAnswer) => whatIfScreen(one, { terminal: {}, beside: [] }).replaceAll("\n", " ");
  assert.match(screen({ ...answer, candidates: [late, ...others] }), /late first tokens included/);
  assert.doesNotMatch(screen(answer), /late first tokens included/);
  for (const line of table.split("\n")) assert.ok(line.length <= 100, line);
});

test("regret is asked of so many decisions, with the alternatives listed", async (t) => {
  const [found] = (await answerTo(t, "--regret", "3", "--counterfactual-k", "1")).candidates;
  assert.equal(found?.regret?.decisions, 3);
  const { out } = await ask(t, "--regret", "3");
  assert.match(out, /Regret by outcome, with hindsight/);
});

test("--limit and --capped leave requests out and count them", async (t) => {
  const { notes } = await ask(t, "--limit", "100");
  assert.match(notes, /60 left out: beyond --limit/);
  assert.match(notes, /100 requests x 1 candidates/);
  const page = join(FOLDER, "page.html");
  await ask(t, "--limit", "50", "--capped", "1", "--html", page, "--profile", "random");
  assert.match(readFileSync(page, "utf8"), /50 requests, 4 endpoints/);
});

test("requests that are too long for the engine are counted beside the answer, as many as get none", async (t) => {
  const { notes } = await ask(t, "--model-tokens-max", "800");
  const [, count, all] = /^note: (\d+) of (\d+) requests are too long for the engine, which takes 800 tokens/m.exec(
    notes,
  )!;
  const { candidates, requests } = await answerTo(t, "--model-tokens-max", "800");
  assert.deepEqual([Number(all), Number(count)], [requests, requests - candidates[0]!.completed]);
  assert.ok(Number(count) > 50);
  const roomy = await ask(t);
  assert.doesNotMatch(roomy.notes, /too long/);
});

test("wrong values are refused with what is accepted", async (t) => {
  const wrong: readonly (readonly [string, string, RegExp])[] = [
    ["--endpoints", "0", /expected a whole number of 1 to 10000/],
    ["--endpoints", "2,", /expected a whole number of 1 to 10000/],
    ["--rate-scale", "-1", /expected a number of 0\.001 to 1000000/],
    ["--rate-scale", "1e-300", /expected a number of 0\.001 to 1000000/],
    ["--scrape-interval", "1e-9", /expected a number of 1 to 10000000/],
    ["--block-tokens", "5000", /expected a whole number of 1 to 4096/],
    ["--replicas", "1e9", /expected a whole number of 0 to 1000/],
    ["--step-error", "7", /expected a number above 0, up to 1/],
    ["--counterfactual-k", "0", /expected a whole number of 1 to 100/],
    ["--regret", "x", /expected a whole number of 0 to 10000/],
    ["--kv-blocks", "1", /expected a whole number of 2 to 100000000/],
    ["--json", "/nowhere/a.json", /--json: expected a file in a folder that is there, got \/nowhere\/a\.json/],
    ["-o", "/nowhere/a.html", /--output: expected a file in a folder that is there, got \/nowhere\/a\.html/],
    ["--html", "/nowhere/a.html", /--html: expected a file in a folder that is there, got \/nowhere\/a\.html/],
    ["--html", FOLDER, /--html: expected a file, got the folder /],
    ["--html", "-", /--html: expected a file, got -/],
  ];
  for (const [flag, value, said] of wrong) {
    const { said: complaint, code } = await ask(t, flag, value);
    assert.match(complaint, said, `${flag} ${value}`);
    assert.equal(code, 2);
  }
});

test("a file that the system refuses is reported in a line, with its path", async (t) => {
  const { said, code } = await ask(t, "--json", join(WORKLOAD, "a.json"));
  assert.match(said, /^.*workload\.jsonl\/a\.json: not a directory$/);
  assert.equal(code, 1);
});

test("where no request can be simulated, the reasons are reported", async (t) => {
  const empty = join(FOLDER, "empty.jsonl");
  writeFileSync(empty, '{"timestamp":0,"input_length":0,"output_length":5,"hash_ids":[]}\n');
  const { said, code } = await inProcess(t, [whatIfCommand()], ["what-if", empty]);
  assert.match(said, /has no request that can be simulated\n {2}1 left out: input_length is not a number of tokens/);
  assert.equal(code, 1);
});

test("each profile reads gauges as it is made for, as in simulate, unless all are to read them alike", async (t) => {
  const asked = ["--profile", "llm-d", "--profile", "round-robin", "--endpoints", "2", "--engine", "emulated-default"];
  const e2eOf = ({ candidates }: WhatIfAnswer, name: string) =>
    candidates.find((one) => one.name === name)!.predicted.e2eMicros!.mean;
  const own = await answerTo(t, ...asked, "--seed", "7");
  const { notes } = await ask(t, ...asked);
  assert.match(notes, /^note: gnomon: gauges every 1000 ms, 5 ms late \(gnomon/m);
  assert.match(notes, /^note: llm-d: gauges every 50 ms, 5 ms late \(llm-d-router, --refresh-metrics-interval\)$/m);
  for (const name of ["llm-d", "gnomon"]) {
    const flags = ["--profile", name, "--seed", "7", "--num-instances", "2", "--engine", "emulated-default", "--json"];
    const run = await inProcess(t, [simulateCommand()], ["simulate", "--workload", WORKLOAD, ...flags]);
    const { out, notes: simulated } = run;
    const { metrics } = JSON.parse(out) as { metrics: { e2eMicros: { all: { mean: number } } } };
    assert.equal(e2eOf(own, name), metrics.e2eMicros.all.mean, name);
    assert.ok(simulated.includes(name === "llm-d" ? "gauges every 50 ms" : "gauges every 1000 ms"), simulated);
  }
  const same = await answerTo(t, ...asked, "--seed", "7", "--signals", "same");
  const stated = await answerTo(t, ...asked, "--seed", "7", "--scrape-interval", "1000");
  assert.deepEqual(stated.candidates, same.candidates);
  assert.notEqual(e2eOf(same, "llm-d"), e2eOf(own, "llm-d"));
  assert.equal(e2eOf(same, "gnomon"), e2eOf(own, "gnomon"));
});

test("what if an endpoint is lost: every profile with and without, and what became of attempts", async (t) => {
  const lose = ["--endpoints", "2", "--profile", "round-robin", "--lose", "endpoint_0@2-6"];
  const { candidates } = await answerTo(t, ...lose);
  const found = new Map(candidates.map(({ name, path, completed }) => [name, { ...path, completed }]));
  assert.deepEqual([...found.keys()].toSorted(), [
    "gnomon",
    "gnomon, endpoint_0 lost at 2 s, back at 6 s",
    "round-robin",
    "round-robin, endpoint_0 lost at 2 s, back at 6 s",
  ]);
  const [asItWas, lost] = ["round-robin", "round-robin, endpoint_0 lost at 2 s, back at 6 s"].map((name) =>
    found.get(name)!,
  );
  assert.deepEqual([asItWas!.retries, asItWas!.cuts, asItWas!.completed], [0, 0, 160]);
  assert.ok(lost!.retries > 0 && lost!.continuations > 0, "what had begun goes on at the other one");
  assert.equal(lost!.completed, 160 - lost!.cuts);
  const { out } = await ask(t, ...lose);
  assert.match(out, /What failed: attempts before the first token; answers that broke/);
  const { said } = await ask(t, "--endpoints", "2", "--lose", "endpoint_7@2");
  assert.match(said, /--lose: expected an endpoint of endpoint_0, endpoint_1, got endpoint_7/);
});

test("from engines that do both to prefill and decode, and back: every profile on the other fleet", async (t) => {
  const there = await answerTo(
    t,
    "--endpoints",
    "4",
    "--profile",
    "round-robin",
    "--architecture",
    "pd",
    "--prefill-replicas",
    "1",
  );
  assert.deepEqual(there.candidates.map(({ name }) => name).toSorted(), [
    "gnomon",
    "gnomon, 1 prefill and 3 decode",
    "round-robin",
    "round-robin, 1 prefill and 3 decode",
  ]);
  assert.ok(there.candidates.every(({ completed }) => completed === 160));
  const means = new Map(there.candidates.map(({ name, predicted }) => [name, predicted.ttftMicros?.mean]));
  assert.notEqual(means.get("round-robin"), means.get("round-robin, 1 prefill and 3 decode"));
  const back = await answerTo(t, "--endpoints", "4", "--in-force", "gnomon-pd", "--architecture", "colocated");
  const [one, other] = back.candidates;
  assert.equal(other?.name, "gnomon-pd, colocated");
  // Without roles nobody computes a prompt for another.
  assert.deepEqual(one?.predicted, other?.predicted);
});

test("--objective has the first sentence, and goodput needs what requests are promised", async (t) => {
  const flags = ["--profile", "round-robin", "--endpoints", "2", "--replicas", "0"];
  const { out } = await ask(t, "--objective", "ttft-p99", ...flags);
  assert.match(out, /^[\w-]+ (?:stays best: p99 TTFT is|may be better: p99 TTFT of)/);
  const refused = await ask(t, "--objective", "goodput", ...flags);
  assert.match(refused.said, /--objective goodput: expected together with --slo/);
});
