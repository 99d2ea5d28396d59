import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { parse } from "yaml";
import { rolloutCommand } from "#cli/rollout/rollout.ts";
import { tuneCommand } from "#cli/tune/tune.ts";
import { loadProfile } from "#config/profile-file.ts";
import { ROLLOUT_SCHEMA } from "#config/rollout-section.ts";
import { randomFor } from "#core/base/random.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-tune-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const WORKLOAD = join(FOLDER, "workload.jsonl");
writeFileSync(WORKLOAD, mooncake(330));

/** Long prompts over documents of which some are asked about at a time, so that it matters where they are cached. */
function mooncake(requests: number): string {
  const random = randomFor(3, 1);
  let timestamp = 0;
  const lines = Array.from({ length: requests }, (_, i) => {
    timestamp += random.below(120);
    const first = 10 * (Math.floor(i / 9) + random.below(3));
    const hash_ids = [first, first + 1, first + 2, first + 3, first + 4, first + 5, 1000 + i];
    return JSON.stringify({ timestamp, input_length: 3100 + random.below(400), output_length: 20, hash_ids });
  });
  return `${lines.join("\n")}\n`;
}

const file = (name: string) => join(FOLDER, name);
const run = (t: TestContext, ...flags: string[]) =>
  inProcess(t, [tuneCommand()], ["tune", WORKLOAD, "--threads", "1", "--replicas", "2", ...flags]);

test("a better policy is written as a profile, a rollout and what llm-d reads; its file decides as it was found", async (t) => {
  const flags = ["--for", "llm-d", "--in-force", "random", "--profile", "llm-d", "--trials", "8", "--state", file("s")];
  const written = [
    "--write-profile",
    file("p.yaml"),
    "--write-rollout",
    file("r.yaml"),
    "--write-llm-d",
    file("l.yaml"),
  ];
  const { code, out, notes } = await run(t, ...flags, ...written, "--json", file("a.json"));
  assert.equal(code, 0, notes);
  assert.match(out, /^BETTER: it gains \d+\.\d % on what was held out/);
  assert.match(out, /who gains/);
  const answer = JSON.parse(readFileSync(file("a.json"), "utf8")) as TuneAnswer & Record<string, unknown>;
  assert.equal(answer.verdict.kind, "better");
  assert.deepEqual(answer["config_for_deployment"], parse(readFileSync(file("l.yaml"), "utf8")));
  assert.deepEqual(loadProfile(file("p.yaml")).spec, answer.winner?.candidate.spec);
  const rollout: unknown = parse(readFileSync(file("r.yaml"), "utf8"));
  const { arms } = ROLLOUT_SCHEMA.parse(rollout);
  assert.deepEqual(
    arms.map(({ profile }) => profile),
    ["random", loadProfile(file("p.yaml")).name],
  );
  const again = await run(t, ...flags, "--json", "-");
  const { remembered, trials } = (JSON.parse(again.out) as TuneAnswer).search!;
  assert.deepEqual([remembered, trials], [answer.search?.trials, 0], "what the state has is not simulated again");
  const other = await run(t, ...flags, "--objective", "ttft-mean");
  assert.equal(other.code, 2);
  assert.match(other.said, /--state: expected a file of the same trace, engine, fleet and objective/);
});

test("how many engines the traffic needs is asked of every size, colocated and divided", async (t) => {
  const slo = ["--objective", "goodput", "--slo-ttft-millis", "400", "--slo-tpot-millis", "60"];
  const flags = ["--profile", "llm-d", "--trials", "2", "--engines", "2..4", "--pd", "--goodput-min", "0.5"];
  const { code, out } = await run(t, ...slo, ...flags, "--in-force", "llm-d");
  assert.equal(code, 0);
  assert.match(out, /2 x emulated-default/);
  assert.match(out, /1 prefill \+ 3 decode x emulated-default/);
  assert.match(out, /with a goodput of 50\.0 % on every drawn engine/);
});

test("what cannot be asked is refused with what is accepted", async (t) => {
  const goodput = await run(t, "--objective", "goodput");
  assert.match(goodput.said, /--objective goodput: expected together with --slo-ttft-millis/);
  assert.match((await run(t, "--pd")).said, /--pd: expected together with --engines/);
  assert.match((await run(t, "--split", "1")).said, /--split: expected a share below 1/);
  assert.match((await run(t, "--engines", "8..2")).said, /expected a range such as 2\.\.8/);
  const none = await run(t, "--trials", "3", "--profile", "gnomon", "--write-profile", file("none.yaml"));
  if (!none.out.startsWith("BETTER")) assert.match(none.notes, /nothing is written, since nothing is recommended/);
  assert.equal(existsSync(file("none.yaml")), none.out.startsWith("BETTER"));
});

test("a fleet or a rate that a recorded trace never had is refused, and not left out of account", async (t) => {
  const trace = join(import.meta.dirname, "../../golden/traces/vllm-client-timed");
  const asked = ["--endpoints", "4", "--rate-scale", "2"];
  const commands = [
    [tuneCommand(), "tune", trace],
    [rolloutCommand(), "rollout", "plan", trace, "--arm", "gnomon", "--arm", "round-robin"],
  ] as const;
  for (const [command, ...argv] of commands) {
    const { code, said } = await inProcess(t, [command], [...argv, ...asked]);
    assert.equal(code, 2, said);
    assert.match(
      said,
      /--endpoints: expected with a foreign workload, got 4 with a recorded trace, whose own count is 1;/,
    );
    assert.match(said, /--rate-scale: expected with a foreign workload, got 2 with a recorded trace/);
  }
});
