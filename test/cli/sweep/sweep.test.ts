import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { parse } from "yaml";
import { simulateCommand } from "#cli/simulate/simulate.ts";
import { sweepCommand } from "#cli/sweep/sweep.ts";
import { whatIfCommand } from "#cli/what-if/what-if.ts";
import { gnomon } from "../command-line.ts";
import { inProcess, type Said } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-sweep-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const WORKLOAD = join(FOLDER, "workload.jsonl");
const lines = Array.from({ length: 30 }, (_, i) =>
  JSON.stringify({ timestamp: i * 50, input_length: 1_024, output_length: 40, hash_ids: [i % 7, 100 + (i % 20)] }),
);
writeFileSync(WORKLOAD, `${lines.join("\n")}\n`);

const WHAT_IF = file("what-if.yaml", {
  command: "what-if",
  trace: WORKLOAD,
  options: { "in-force": "round-robin", "step-error": 0.05, replicas: 2 },
  grid: { profile: ["gnomon", "lmetric"], endpoints: [2], "scrape-interval": [100, 1000] },
});

function file(name: string, content: object): string {
  const path = join(FOLDER, name);
  writeFileSync(path, JSON.stringify(content));
  return path;
}

const sweep = (t: TestContext, ...argv: string[]): Promise<Said> => inProcess(t, [sweepCommand()], ["sweep", ...argv]);

interface Line {
  readonly point: number;
  readonly axes: Readonly<Record<string, unknown>>;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: string;
}

function pointsOf(text: string): Line[] {
  const [, ...rest] = text.trimEnd().split("\n");
  return rest.map((line) => JSON.parse(line) as Line);
}

test("threads, one thread and merged shards give the same bytes; a point is what the command alone gives", async (t) => {
  const onThreads = join(FOLDER, "threads.jsonl");
  const { out, code } = await sweep(t, WHAT_IF, "--threads", "2", "--out", onThreads);
  assert.equal(code, 0);
  assert.match(out, /lmetric/);
  const whole = readFileSync(onThreads, "utf8");
  const parts = join(FOLDER, "parts");
  for (const index of ["2", "0", "1"]) {
    const ran = await sweep(t, WHAT_IF, "--threads", "1", "--shards", "3", "--shard", index, "--parts", parts);
    assert.equal(ran.code, 0, ran.said);
  }
  const merged = await sweep(t, WHAT_IF, "--merge", "--shards", "3", "--parts", parts, "--out", "-");
  assert.equal(merged.out, whole);
  const points = pointsOf(whole);
  assert.deepEqual(
    points.map(({ point }) => point),
    [0, 1, 2, 3],
  );
  assert.deepEqual(points[3]!.axes, { profile: "lmetric", endpoints: 2, "scrape-interval": 1000 });
  const flags = ["--in-force", "round-robin", "--step-error", "0.05", "--replicas", "2", "--profile", "lmetric"];
  const alone = ["what-if", WORKLOAD, ...flags, "--endpoints", "2", "--scrape-interval", "1000", "--json", "-"];
  assert.deepEqual(JSON.parse((await inProcess(t, [whatIfCommand()], alone)).out), points[3]!.result);
});

test("a simulation's point is what the command alone gives", async (t) => {
  const options = { "num-requests": 40, rate: 20, "token-gaps": true };
  const spec = file("simulate.yaml", { command: "simulate", options, grid: { "num-instances": [1, 2], seed: [3] } });
  const points = pointsOf((await sweep(t, spec, "--threads", "1", "--out", "-")).out);
  const argv = [
    "--num-requests",
    "40",
    "--rate",
    "20",
    "--token-gaps",
    "--num-instances",
    "2",
    "--seed",
    "3",
    "--json",
  ];
  const alone = await inProcess(t, [simulateCommand()], ["simulate", ...argv]);
  assert.deepEqual(points[1]!.result, JSON.parse(alone.out));
  assert.match((await sweep(t, spec, "--threads", "1")).out, /seed=3/);
});

test("a shard that is lost is named and run again; one that is there, or of another sweep, is not mistaken", async (t) => {
  const parts = join(FOLDER, "lost");
  const shard = (index: string, spec = WHAT_IF) =>
    sweep(t, spec, "--threads", "1", "--shards", "2", "--shard", index, "--parts", parts);
  const merge = () => sweep(t, WHAT_IF, "--merge", "--shards", "2", "--parts", parts, "--out", "-");
  await shard("0");
  const broken = await merge();
  assert.equal(broken.code, 1);
  assert.match(broken.said, /1 of 2 shards are not there.*part-00001-of-00002\.jsonl/);
  await shard("1");
  assert.match((await shard("1")).notes, /shard 1 of 2 is there already/);
  const second = join(parts, "part-00001-of-00002.jsonl");
  const whole = readFileSync(second, "utf8");
  const { out } = await merge();
  for (const cut of [
    whole.slice(0, -1),
    whole.slice(0, whole.lastIndexOf('{"point"')),
    whole.replace(/^.*\n/, "{}\n"),
  ]) {
    writeFileSync(second, cut);
    assert.match((await merge()).said, /part-00001/);
    assert.equal((await shard("1")).code, 0);
    assert.equal(readFileSync(second, "utf8"), whole);
  }
  const other = { command: "what-if", trace: WORKLOAD, grid: { profile: ["gnomon", "lmetric"] } };
  await shard("1", file("other.yaml", other));
  assert.match((await merge()).said, /part-00001/);
  await shard("1");
  assert.equal((await merge()).out, out);
});

test("a point that cannot be run is an error among the results, and of the command", async (t) => {
  const grid = { profile: ["gnomon", "no-such-profile"] };
  const spec = file("bad-point.yaml", { command: "what-if", trace: WORKLOAD, grid });
  const { code, out, said } = await sweep(t, spec, "--threads", "1", "--out", "-");
  assert.equal(code, 1);
  assert.match(said, /1 of 2 points/);
  const [good, bad] = pointsOf(out);
  assert.ok(good!.result !== undefined && good!.error === undefined);
  assert.match(bad!.error ?? "", /no-such-profile/);
});

test("the Job takes its shard's number from its pod, writes what is merged, and is fit for a restricted namespace", async (t) => {
  const outside = await sweep(t, WHAT_IF, "--job", "-", "--shards", "2");
  assert.deepEqual([outside.code, outside.out], [2, ""]);
  assert.match(outside.said, /expected <file> as a path in the claim/);
  const previous = process.cwd();
  t.after(() => process.chdir(previous));
  process.chdir(FOLDER);
  const job = parse(
    (await sweep(t, "what-if.yaml", "--job", "-", "--shards", "2", "--claim", "runs", "--parallelism", "1")).out,
  ) as Job;
  const { spec } = job;
  assert.deepEqual([job.kind, spec.completionMode, spec.completions, spec.parallelism], ["Job", "Indexed", 2, 1]);
  const [container] = spec.template.spec.containers;
  assert.equal(container!.args[0], "sweep");
  const parts = join(FOLDER, "by-job");
  const argv = container!.args.map((one) => (one === "parts" ? parts : one));
  for (let index = 0; index < spec.completions; index++) {
    const pod = gnomon(t, argv, { JOB_COMPLETION_INDEX: String(index) });
    assert.equal((await pod.exit).code, 0, pod.stderr());
  }
  const merged = await sweep(t, WHAT_IF, "--merge", "--shards", "2", "--parts", parts, "--out", "-");
  assert.equal(merged.out, (await sweep(t, WHAT_IF, "--threads", "1", "--out", "-")).out);
});

interface Job {
  readonly kind: string;
  readonly spec: {
    readonly completionMode: string;
    readonly completions: number;
    readonly parallelism: number;
    readonly template: { readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] } };
  };
}

test("what is wrong with a sweep is named with its place before anything runs", async (t) => {
  const cases: [content: object, said: RegExp][] = [
    [{ command: "replay", grid: { seed: [1] } }, /command: expected one of what-if, simulate/],
    [{ command: "what-if", grid: { seed: [1] } }, /trace: expected a trace or a workload/],
    [{ command: "simulate", trace: "x", grid: { seed: [1] } }, /trace: expected none/],
    [{ command: "simulate", grid: {} }, /grid: expected 1 to 16/],
    [{ command: "simulate", grid: { seed: [] } }, /grid\.seed/],
    [{ command: "simulate", options: { json: true }, grid: { seed: [1] } }, /options\.json: expected none/],
    [{ command: "simulate", options: { seed: 1 }, grid: { seed: [1] } }, /grid\.seed: expected an option that is not/],
    [{ command: "simulate", grid: { seeds: [1] } }, /point 0 .*unknown option '--seeds=1'/],
    [{ command: "simulate", grid: { seed: [1, "x"] } }, /point 1 .*--seed/],
    [{ command: "simulate", grid: { seed: range(400), rate: range(400) } }, /grid: expected 100000 .* got 160000/],
  ];
  for (const [content, pattern] of cases) {
    const { code, said } = await sweep(t, file("wrong.yaml", content), "--threads", "1");
    assert.equal(code, 2);
    assert.match(said, pattern);
  }
  for (const [argv, pattern] of [
    [["--shard", "1"], /--shard: expected together with --shards/],
    [["--shards", "2"], /--shard: expected one of 0 to 1, or it in JOB_COMPLETION_INDEX, got none/],
    [["--shards", "2", "--shard", "2"], /expected one of 0 to 1.* got 2/],
    [["--merge"], /--merge: expected together with --shards/],
    [["--job", "-"], /--job: expected together with --shards/],
  ] as const) {
    const { code, said } = await sweep(t, WHAT_IF, ...argv);
    assert.equal(code, 2);
    assert.match(said, pattern);
  }
});

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i + 1);
}

test("errors of points are lines for people, not a word a line", async (t) => {
  const spec = file("unknown.yaml", { command: "simulate", grid: { profile: ["no such one", "nor this"] } });
  const { out, code } = await sweep(t, spec, "--threads", "1");
  assert.equal(code, 1);
  assert.match(out, /^point 0 \(profile=no such one\): profile: expected one of /m);
  assert.match(out, /^point 1 \(profile=nor this\): profile: expected one of /m);
});
