import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, after, before, test } from "node:test";
import { emulateCommand } from "#cli/serve/emulate.ts";
import { simulateCommand } from "#cli/simulate/simulate.ts";
import { workloadNames } from "#trace/import/named-workload.ts";
import { gnomon } from "../command-line.ts";
import { type Said, inProcess } from "../in-process.ts";

/** A file with no request in it. */
const EMPTY = join(import.meta.dirname, "../../../package.json");
const SMALL = ["--num-instances", "2", "--num-requests", "60", "--seed", "9"];
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gnomon-simulate-"));
});
after(async () => rm(folder, { recursive: true, force: true }));

function simulate(t: TestContext, ...flags: readonly string[]): Promise<Said> {
  return inProcess(t, [simulateCommand()], ["simulate", ...flags]);
}

test("results go to standard output as JSON with BLIS's figures, twice the same; what is printed beside them does not", async (t) => {
  const requests = join(folder, "requests.jsonl");
  const flags = [...SMALL, "--json", "--check", "--summarize-trace", "--trace-level", "decisions", "--slo", "*:1000::"];
  const one = gnomon(t, ["simulate", ...flags, "--requests-path", requests]);
  assert.equal((await one.exit).code, 0, one.stderr());
  assert.equal((await simulate(t, ...flags)).out, one.stdout());
  assert.match(one.stderr(), /60 requests, .* simulated seconds in/);
  const result = JSON.parse(one.stdout()) as Record<string, Record<string, unknown>>;
  assert.deepEqual(Object.keys(result).sort(), [
    "delays",
    "endpoints",
    "fitness",
    "metrics",
    "path",
    "policyId",
    "rejections",
    "requests",
    "signals",
    "simDurationMicros",
    "stranded",
    "summary",
    "tenants",
    "trace",
    "workloadId",
  ]);
  assert.equal(result["requests"]?.["completed"], 60);
  assert.equal((result["trace"]?.["decisions"] as unknown[] | undefined)?.length, 60);
  for (const figure of [
    "ttftMicros",
    "tpotMicros",
    "e2eMicros",
    "requestsPerSec",
    "sloAttainment",
    "jainFairnessIndex",
    "cacheHitRate",
    "preemptionRate",
    "priorityInversions",
    "holBlockingEvents",
    "kvThrashingRate",
    "offloadRate",
  ])
    assert.ok(figure in (result["metrics"] ?? {}), figure);
  const lines = (await readFile(requests, "utf8")).trim().split("\n");
  assert.equal(lines.length, 60);
  assert.equal((JSON.parse(lines[0] ?? "") as { status: string }).status, "completed");
});

test("what is asked wrongly is refused on standard error with what is accepted", async (t) => {
  const wrong: [string[], RegExp][] = [
    [
      ["--routing-cache-weight", "0.6"],
      /--routing-cache-weight was removed; use --routing-scorers "prefix-affinity:3,/,
    ],
    [["--routing-load-weight", "0.6"], /--routing-load-weight was removed; use --routing-scorers /],
    [["--admission-policy", "none"], /--admission-policy: expected one of always-admit, token-bucket/],
    [["--num-instances", "0"], /--num-instances .* expected a whole number from 1 to 10000/],
    [["--scrape-interval", "1e-9"], /--scrape-interval .* expected a number from 0\.1 to 10000000/],
    [["--scrape-interval", "NaN"], /--scrape-interval .* expected a number from 0\.1 to 10000000/],
    [["--rate-scale", "1e-300"], /--rate-scale .* expected a number from 0\.001 to 1000000/],
    [["--rate-scale", "-2"], /--rate-scale .* expected a number from 0\.001 to 1000000/],
    [["--rate", "1e-9"], /--rate: expected one at which all requests come within 285 years/],
    [["--profile", "gnomon,lmetric"], /profile: expected one profile, got 2: gnomon, lmetric/],
    [["--workload-spec", "chatbox"], /workload: expected the path of a file, or one of chatbot, .*got "chatbox"/],
    [["--routing-scorers", "prefix-affinity:1,nothing:2"], /expected one of .*"nothing"/],
    [["--fitness-weights", "speed:1"], /--fitness-weights: expected one of throughput/],
    [["--workload", "a.jsonl", "--workload-spec", "b.yaml"], /--workload: expected to be alone/],
    [["--workload", EMPTY], /expected a workload with requests, got none/],
    [["--engine", "h100-llama-3.1-8b", "--model-config", "c.json"], /--engine: expected to be alone/],
    [["--hardware", "H100"], /--hardware: expected together with --model or --model-config/],
  ];
  for (const [flags, complaint] of wrong) {
    const { code, out, said } = await simulate(t, ...flags);
    assert.equal(code, 2, said);
    assert.equal(out, "");
    assert.match(said, complaint);
  }
  const refused = gnomon(t, ["simulate", "--num-instances", "0"]);
  assert.equal((await refused.exit).code, 2);
  assert.equal(refused.stdout(), "");
  assert.match(refused.stderr(), /--num-instances .* expected a whole number from 1 to 10000/);
});

test("gauges are read as often as the router that a profile comes from reads them, unless an interval is given", async (t) => {
  const figures = async (...flags: readonly string[]) => {
    const { code, out, said } = await simulate(
      t,
      ...SMALL,
      "--json",
      "--workload-spec",
      "chatbot",
      "--rate",
      "40",
      ...flags,
    );
    assert.equal(code, 0, said);
    // Which interval it was is stated, and where it comes from.
    return out.replace(/^ {2}"signals": .*\n/m, "");
  };
  const own = await figures("--profile", "llm-d");
  const fast = await figures("--profile", "llm-d", "--scrape-interval", "50");
  const slow = await figures("--profile", "llm-d", "--scrape-interval", "1000");
  const gnomons = await figures("--profile", "gnomon");
  const gnomonSlow = await figures("--profile", "gnomon", "--scrape-interval", "1000");
  assert.equal(own, fast);
  assert.notEqual(own, slow);
  assert.equal(gnomons, gnomonSlow);
});

test("an engine of two ranks serves all its requests; what nobody could know of its caches is refused", async (t) => {
  const engine = join(folder, "two-ranks.yaml");
  await writeFile(engine, "dataParallel: 2\nsequencesMax: 4\nbatchTokensMax: 512\n");
  const flags = [...SMALL, "--json", "--check", "--engine", engine];
  const two = await simulate(t, ...flags);
  assert.equal(two.code, 0, two.said);
  const { requests } = JSON.parse(two.out) as { readonly requests: { readonly completed: number } };
  assert.equal(requests.completed, 60);
  const other = await simulate(t, ...flags, "--prefix-index", "oracle");
  assert.equal(other.code, 2);
  assert.match(other.said, /--prefix-index: expected approximate for engines of 2 data-parallel ranks, got oracle/);
});

test("an emulated engine is one rank", async (t) => {
  const engine = join(folder, "three-ranks.yaml");
  await writeFile(engine, "dataParallel: 3\n");
  const flags = ["emulate", "--port-base", "0", "--engine", engine];
  const { code, said } = await inProcess(t, [emulateCommand()], flags);
  assert.equal(code, 2);
  assert.match(said, /emulate\.engine: dataParallel: expected 1, got 3/);
});

test("--priority-policy slo-based serves urgent classes first, by the document's scores, on engines that go by them", async (t) => {
  const policies = join(folder, "document-priority.yaml");
  await writeFile(
    policies,
    "priority: {type: slo-based, params: {realtime_score: 100, batch_score: 10, default_score: 50}}\n" +
      "scheduler: {type: priority-fcfs}\n",
  );
  const busy = ["--num-instances", "1", "--rate", "300", "--num-requests", "900", "--json"];
  const ttft = async (...flags: string[]) => {
    const { out, said } = await simulate(t, ...busy, ...flags);
    assert.notEqual(out, "", said);
    const { metrics } = JSON.parse(out) as { metrics: { ttftMicros: Record<string, { mean: number }> } };
    return { standard: metrics.ttftMicros["standard"]!.mean, batch: metrics.ttftMicros["batch"]!.mean };
  };
  const [alike, byClass] = [await ttft(), await ttft("--priority-policy", "slo-based")];
  assert.ok(byClass.standard < alike.standard && byClass.batch > alike.batch, JSON.stringify([alike, byClass]));
  assert.deepEqual(byClass, await ttft("--policy-config", policies));
  assert.deepEqual(await ttft("--priority-policy", "slo-based", "--scheduler", "fcfs"), alike, "as asked");
});

test("--counterfactual-k alone simulates decisions again: its regret is of outcomes, which scores do not show", async (t) => {
  const flags = ["--num-instances", "3", "--rate", "40", "--num-requests", "100", "--counterfactual-k", "5"];
  const { out } = await simulate(t, ...flags, "--trace-level", "decisions", "--summarize-trace");
  assert.doesNotMatch(out, /score regret/, "the best score was taken each time");
  const [, mean] =
    /^regret +([\d.]+) ms mean of E2E over 50 counterfactual decisions, \d+ had a better/m.exec(out) ?? [];
  assert.ok(Number(mean) > 0, out);
  const drawn = await simulate(t, ...flags, "--profile", "random", "--counterfactual-decisions", "3", "--json");
  const { counterfactuals } = JSON.parse(drawn.out) as { counterfactuals: { alternatives: unknown[] }[] };
  assert.deepEqual(
    counterfactuals.map(({ alternatives }) => alternatives.length),
    [2, 2, 2],
  );
});

test("an engine that is lost shows in counts as the gateway's, and a value that cannot be is refused", async (t) => {
  const lost = await simulate(t, ...SMALL, "--rate", "10", "--lose", "instance_0@1-4", "--json");
  assert.equal(lost.code, 0, lost.said);
  const { path, requests } = JSON.parse(lost.out) as {
    path: { retries: number; cuts: number; faults: object };
    requests: { cut: number; completed: number };
  };
  assert.ok(path.retries > 0 && Object.keys(path.faults).length > 0, JSON.stringify(path));
  assert.equal(path.cuts, requests.cut);
  assert.equal(requests.completed + requests.cut, 60);
  assert.match(
    (await simulate(t, ...SMALL, "--rate", "10", "--lose", "instance_0@1")).out,
    /faults .*attempts failed: .*retried/,
  );
  const told = async (value: string): Promise<string> => (await simulate(t, ...SMALL, "--lose", value)).said;
  assert.match(await told("instance_9@1"), /--lose: expected an endpoint of instance_0, .*got instance_9/);
  assert.match(await told("instance_0"), /expected endpoint@seconds or endpoint@from-to/);
  assert.match(await told("instance_0@5-2"), /return after that of the loss/);
});

test("several routers decide as one where news come at once, otherwise where they never do, and wrong lags are refused", async (t) => {
  const flags = ["--num-instances", "3", "--num-requests", "120", "--rate", "60", "--json", "--check"];
  const one = await simulate(t, ...flags);
  const shared = await simulate(t, ...flags, "--routers", "3", "--share-lag", "0");
  const apart = await simulate(t, ...flags, "--routers", "3", "--share-lag", "none");
  const figures = ({ out }: Said) => (JSON.parse(out) as { metrics: unknown }).metrics;
  assert.deepEqual(figures(shared), figures(one));
  assert.notDeepEqual(figures(apart), figures(one));
  const wrong = await simulate(t, "--routers", "2", "--share-lag", "soon");
  assert.match(wrong.said, /--share-lag .*expected none, or a number of milliseconds from 0/);
  const oracle = await simulate(t, "--routers", "2", "--prefix-index", "oracle");
  assert.match(oracle.said, /--prefix-index: expected approximate with --routers 2, got oracle/);
});

test("a model names its engine with its board; a bucket has the size that was asked for; a cascade has its file's engines", async (t) => {
  const named = await simulate(t, ...SMALL, "--model", "llama-3.1-8b", "--hardware", "A100", "--json");
  const byFile = await simulate(t, ...SMALL, "--engine", "a100-llama-3.1-8b", "--json");
  assert.equal(named.out, byFile.out);
  const bucket = ["--admission-policy", "token-bucket", "--admission-bucket-size"];
  const refused = async (size: string) =>
    (JSON.parse((await simulate(t, ...SMALL, ...bucket, size, "--json")).out) as { rejections: Record<string, number> })
      .rejections["bucket-empty"] ?? 0;
  assert.ok((await refused("100")) > (await refused("100000")));
  const file = join(import.meta.dirname, "../../../config/policies/cascade.yaml");
  const cascade = JSON.parse(
    (await simulate(t, "--num-requests", "60", "--seed", "9", "--cascade", file, "--json")).out,
  ) as { endpoints: unknown[]; cascade: { escalatedShare: number } };
  assert.equal(cascade.endpoints.length, 4);
  assert.ok(cascade.cascade.escalatedShare > 0.2 && cascade.cascade.escalatedShare < 0.8);
  for (const [flags, words] of [
    [["--model", "llama"], /--model: .*llama-3\.1-8b/],
    [["--model", "llama-3.1-8b"], /--hardware: expected one of a100, h100, rtx4090/],
    [["--admission-bucket-size", "5"], /--admission-bucket-size: expected with/],
    [["--cascade", file, "--engine", "h100-llama-3.1-8b"], /--cascade: expected without --engine/],
    [["--cascade", EMPTY], /steps/],
  ] as const) {
    const { said } = await simulate(t, ...SMALL, ...flags);
    assert.match(said, words);
  }
});

interface PdResult {
  readonly requests: Readonly<Record<string, number>>;
  readonly handoffs?: { readonly shared: number; readonly bytes: number; readonly transferMicrosMean: number };
  readonly endpoints: readonly { readonly requests: number }[];
  readonly trace: { readonly decisions: readonly { readonly endpoint: string; readonly prefillEndpoint?: string }[] };
}

test("the engine that is meant where none is named takes every request of each workload that comes with gnomon", async (t) => {
  for (const name of workloadNames()) {
    const { out } = await simulate(t, "--workload-spec", name, "--num-requests", "300", "--json");
    const { requests } = JSON.parse(out) as { readonly requests: Readonly<Record<string, number>> };
    const { completed = 0, ...others } = requests;
    assert.ok(completed > 200, name);
    assert.deepEqual(
      Object.values(others).filter((count) => count > 0),
      [],
      name,
    );
  }
  const short = await simulate(t, "--workload-spec", "documents", "--num-requests", "50", "--kv-gpu-blocks", "600");
  assert.match(short.notes, /^note: \d\d of 50 requests are too long for the engine, which takes 9584 tokens; /m);
});

test("--architecture pd: prompts at some engines and answers at others, by whichever profile; transfers by their flags", async (t) => {
  const run = async (...flags: string[]): Promise<PdResult> => {
    const given = [...SMALL, "--architecture", "pd", "--colocate-below-tokens", "0", "--check", "--json", ...flags];
    return JSON.parse((await simulate(t, ...given, "--trace-level", "decisions")).out) as PdResult;
  };
  const { requests, handoffs, endpoints, trace } = await run("--num-instances", "5", "--prefill-replicas", "2");
  assert.equal(requests["completed"], 60);
  assert.equal(handoffs?.shared, 60);
  assert.deepEqual(
    endpoints.map((one) => one.requests > 0),
    [false, false, true, true, true],
  );
  for (const { endpoint, prefillEndpoint } of trace.decisions) {
    assert.match(prefillEndpoint ?? "", /_[01]$/);
    assert.match(endpoint, /_[234]$/);
  }
  const halves = await run(
    "--profile",
    "round-robin",
    "--pd-transfer-latency",
    "1s",
    "--pd-transfer-bandwidth",
    "1TB/s",
  );
  assert.equal(halves.handoffs?.shared, 60);
  assert.ok(Math.round((halves.handoffs?.transferMicrosMean ?? 0) / 1e4) === 100, JSON.stringify(halves.handoffs));
  for (const [count, flags] of [
    ["1", []],
    ["4", ["--prefill-replicas", "4"]],
    ["4", ["--decode-replicas", "5"]],
  ] as const) {
    const refused = await simulate(t, "--num-instances", count, "--architecture", "pd", ...flags);
    assert.equal(refused.code, 2);
    assert.ok(refused.said.startsWith(`--architecture pd: expected at least one engine of each kind, got ${count}: `));
  }
  const both = ["--architecture", "pd", "--prefill-replicas", "1", "--decode-replicas", "2"];
  const other = await simulate(t, "--num-instances", "8", ...both);
  assert.match(other.said, /^--num-instances: expected the 3 of --prefill-replicas and --decode-replicas, got 8$/);
  const three = await simulate(t, "--num-requests", "9", "--json", ...both);
  assert.equal((JSON.parse(three.out) as { endpoints: unknown[] }).endpoints.length, 3);
  const table = await simulate(t, ...SMALL, "--architecture", "pd");
  assert.match(table.out, /prefill +\d+ decisions for two endpoints/);
  const alone = await simulate(t, "--prefill-replicas", "2");
  assert.match(alone.said, /--prefill-replicas: expected together with --architecture pd/);
  const wrong = await simulate(t, "--pd-transfer-bandwidth", "fast");
  assert.match(wrong.said, /expected a rate such as 25GB\/s/);
});

test("keys of a gateway's configuration change what is done about endpoints and who is let in, by their names there", async (t) => {
  const busy = [...SMALL, "--rate", "10", "--json"];
  const set = (...pairs: readonly string[]) => pairs.flatMap((pair) => ["--set", pair]);
  const out = async (...flags: readonly string[]) => (await simulate(t, ...busy, ...flags)).out;
  const hedged = await out("--hedge-after", "15", "--hedge-share", "0.5");
  assert.equal(await out(...set("limits.hedgeMillis=15", "limits.hedgeShareMax=0.5")), hedged);
  assert.notEqual(hedged, await out());
  const lost = ["--lose", "instance_0@1-4"];
  const plain = await out(...lost);
  assert.equal(await out(...lost, ...set("limits.attemptsMax=3")), plain, "as it is by default");
  assert.notEqual(
    await out(...lost, ...set("routing.slowStart.windowMillis=120000", "routing.slowStart.shareMin=0.01")),
    plain,
  );
  assert.notEqual(await out(...lost, ...set("limits.attemptsMax=1", "scrape.lostAfterMillis=1000")), plain);
  const limit = "admission.limits={few: {type: rate-limit, per: all, requestsMax: 7, windowMillis: 86400000}}";
  const { requests } = JSON.parse(await out(...set(limit))) as { requests: Record<string, number> };
  assert.equal(requests["completed"], 7);
  const said = async (...flags: readonly string[]) => (await simulate(t, ...busy, ...flags)).said;
  assert.match(
    await said(...set("listen.port=1")),
    /--set: expected one of admission, routing\.breaker, .*got listen\.port/,
  );
  assert.match(
    await said(...set("routing.ejection.floorShare=2")),
    /routing\.ejection\.floorShare: expected a number in \[0, 1\], got 2/,
  );
  const both = await said(...set(limit), "--admission-policy", "token-bucket");
  assert.match(both, /--set: expected nothing of admission beside an admission or priority policy/);
});

test("what was taken otherwise than it was recorded is reported, and a rate below a hundredth is no 0.00", async (t) => {
  const path = join(folder, "rare.jsonl");
  const line = (timestamp: number) =>
    JSON.stringify({ timestamp, input_length: 500, output_length: 5, hash_ids: [timestamp] });
  await writeFile(path, `${[0, 3_600_000, 7_200_000].map(line).join("\n")}\n`);
  const { out, notes } = await simulate(t, "--workload", path);
  assert.match(notes, /rare\.jsonl: 3 times: arrival spread over a grid cell of 3000 ms/);
  assert.match(out, /throughput +0\.00042 requests\/s/);
});
