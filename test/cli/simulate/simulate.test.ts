import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

const MAIN = join(import.meta.dirname, "../../../src/main.ts");
/** A file with no request in it. */
const EMPTY = join(import.meta.dirname, "../../../package.json");
const SMALL = ["--num-instances", "2", "--num-requests", "60", "--seed", "9"];
let folder = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "gnomon-simulate-"));
});
after(async () => rm(folder, { recursive: true, force: true }));

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function simulate(...flags: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, "simulate", ...flags], (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr });
    });
  });
}

test("results go to standard output as JSON with BLIS's figures, twice the same; what is said beside them does not", async () => {
  const requests = join(folder, "requests.jsonl");
  const flags = [...SMALL, "--json", "--check", "--summarize-trace", "--trace-level", "decisions", "--slo", "*:1000::"];
  const [one, other] = await Promise.all([simulate(...flags, "--requests-path", requests), simulate(...flags)]);
  assert.equal(one.code, 0, one.stderr);
  assert.equal(one.stdout, other.stdout);
  assert.match(one.stderr, /60 requests, .* simulated seconds in/);
  const result = JSON.parse(one.stdout) as Record<string, Record<string, unknown>>;
  assert.deepEqual(Object.keys(result).sort(), [
    "delays",
    "endpoints",
    "fitness",
    "metrics",
    "path",
    "policyId",
    "rejections",
    "requests",
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
  ])
    assert.ok(figure in (result["metrics"] ?? {}), figure);
  const lines = (await readFile(requests, "utf8")).trim().split("\n");
  assert.equal(lines.length, 60);
  assert.equal((JSON.parse(lines[0] ?? "") as { status: string }).status, "completed");
});

test("what is asked wrongly is refused on standard error with what is accepted", async () => {
  const wrong: [string[], RegExp][] = [
    [["--admission-policy", "none"], /--admission-policy: expected one of always-admit, token-bucket/],
    [["--num-instances", "0"], /--num-instances .* expected a whole number from 1 to 10000/],
    [["--scrape-interval", "1e-9"], /--scrape-interval .* expected a number from 0\.1 to 10000000/],
    [["--scrape-interval", "NaN"], /--scrape-interval .* expected a number from 0\.1 to 10000000/],
    [["--rate-scale", "1e-300"], /--rate-scale .* expected a number from 0\.001 to 1000000/],
    [["--rate-scale", "-2"], /--rate-scale .* expected a number from 0\.001 to 1000000/],
    [["--workload-spec", "chatbox"], /workload: expected the path of a file, or one of chatbot, .*got "chatbox"/],
    [["--routing-scorers", "prefix-affinity:1,nothing:2"], /expected one of .*"nothing"/],
    [["--fitness-weights", "speed:1"], /--fitness-weights: expected one of throughput/],
    [["--workload", "a.jsonl", "--workload-spec", "b.yaml"], /--workload: expected to be alone/],
    [["--workload", EMPTY], /expected a workload with requests, got none/],
    [["--engine", "h100-llama-3.1-8b", "--model-config", "c.json"], /--engine: expected to be alone/],
    [["--hardware", "H100"], /--hardware: expected together with --model-config/],
  ];
  const runs = await Promise.all(wrong.map(([flags]) => simulate(...flags)));
  runs.forEach(({ code, stdout, stderr }, i) => {
    assert.equal(code, 2, stderr);
    assert.equal(stdout, "");
    assert.match(stderr, wrong[i]![1]);
  });
});

test("gauges are read as often as the router that a profile comes from reads them, unless an interval is given", async () => {
  const figures = async (...flags: readonly string[]) => {
    const { code, stdout, stderr } = await simulate(
      ...SMALL,
      "--json",
      "--workload-spec",
      "chatbot",
      "--rate",
      "40",
      ...flags,
    );
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const [own, fast, slow, gnomon, gnomonSlow] = await Promise.all([
    figures("--profile", "llm-d"),
    figures("--profile", "llm-d", "--scrape-interval", "50"),
    figures("--profile", "llm-d", "--scrape-interval", "1000"),
    figures("--profile", "gnomon"),
    figures("--profile", "gnomon", "--scrape-interval", "1000"),
  ]);
  assert.equal(own, fast);
  assert.notEqual(own, slow);
  assert.equal(gnomon, gnomonSlow);
});

test("an engine of two ranks serves all its requests; what nobody could know of its caches is refused", async () => {
  const engine = join(folder, "two-ranks.yaml");
  await writeFile(engine, "dataParallel: 2\nsequencesMax: 4\nbatchTokensMax: 512\n");
  const flags = [...SMALL, "--json", "--check", "--engine", engine];
  const [two, other] = await Promise.all([simulate(...flags), simulate(...flags, "--prefix-index", "oracle")]);
  assert.equal(two.code, 0, two.stderr);
  const { requests } = JSON.parse(two.stdout) as { readonly requests: { readonly completed: number } };
  assert.equal(requests.completed, 60);
  assert.equal(other.code, 2);
  assert.match(other.stderr, /--prefix-index: expected approximate for engines of 2 data-parallel ranks, got oracle/);
});

test("an emulated engine is one rank", async () => {
  const engine = join(folder, "three-ranks.yaml");
  await writeFile(engine, "dataParallel: 3\n");
  const flags = [MAIN, "emulate", "--port-base", "0", "--engine", engine];
  const { code, stderr } = await new Promise<Ran>((resolve) => {
    execFile(process.execPath, flags, (error, stdout, said) => {
      resolve({ code: typeof error?.code === "number" ? error.code : 0, stdout, stderr: said });
    });
  });
  assert.equal(code, 2);
  assert.match(stderr, /emulate\.engine: dataParallel: expected 1, got 3/);
});

test("an engine that is lost shows in counts as the gateway's, and a value that cannot be is refused", async () => {
  const lost = await simulate(...SMALL, "--rate", "10", "--lose", "instance_0@1-4", "--json");
  assert.equal(lost.code, 0, lost.stderr);
  const { path, requests } = JSON.parse(lost.stdout) as {
    path: { retries: number; cuts: number; faults: object };
    requests: { cut: number; completed: number };
  };
  assert.ok(path.retries > 0 && Object.keys(path.faults).length > 0, JSON.stringify(path));
  assert.equal(path.cuts, requests.cut);
  assert.equal(requests.completed + requests.cut, 60);
  assert.match(
    (await simulate(...SMALL, "--rate", "10", "--lose", "instance_0@1")).stdout,
    /faults .*attempts failed: .*retried/,
  );
  const told = async (value: string): Promise<string> => (await simulate(...SMALL, "--lose", value)).stderr;
  assert.match(await told("instance_9@1"), /--lose: expected an endpoint of instance_0, .*got instance_9/);
  assert.match(await told("instance_0"), /expected endpoint@seconds or endpoint@from-to/);
  assert.match(await told("instance_0@5-2"), /return after that of the loss/);
});
