import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { whyCommand } from "#cli/why/why.ts";
import type { WhyAnswer } from "#shadow/why/why-answer.ts";
import { TraceWriter } from "#trace/export/trace-writer.ts";
import { injectedTrace } from "../../../bench/why/injected-cause.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-why-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const TRACE = join(FOLDER, "trace");
const ENGINE = ["--engine", "emulated-default", "--no-cache"];

before(async () => {
  const writer = new TraceWriter(TRACE);
  for (const item of injectedTrace({ cause: "index", seed: 5, conversations: 30 })) await writer.write(item);
  await writer.close();
});

const ask = (t: TestContext, path: string, ...flags: string[]) => inProcess(t, [whyCommand()], ["why", path, ...flags]);

async function answerTo(t: TestContext, ...flags: string[]): Promise<WhyAnswer> {
  const { out, said } = await ask(t, TRACE, ...ENGINE, "--json", ...flags);
  assert.equal(said, "");
  return JSON.parse(out) as WhyAnswer;
}

test("the terminal gets a sentence with figures first, and both tables on one screen", async (t) => {
  const { out, code } = await ask(t, TRACE, ...ENGINE);
  assert.equal(code, 0);
  const lines = out.trimEnd().split("\n");
  assert.match(out, /^[A-Z][^.]* [\d.]+ ms/);
  assert.match(
    out.replaceAll("\n", " "),
    /Of \d+ cached tokens that were possible \d+ were hit \(\d+\.\d %\); most others, \d+ .* were lost to index/,
  );
  assert.ok(lines.length <= 40, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => line.length > 120),
    [],
  );
  for (const part of ["load", "own", "unexplained", "together", "hit", "new"])
    assert.match(out, new RegExp(`^${part} `, "m"));
});

test("the sum rules hold in the answer as JSON, of a percentile, another time and one request too", async (t) => {
  const whole = await answerTo(t, "--objective", "e2e-mean");
  const rank = await answerTo(t, "--percentile", "90");
  assert.deepEqual([rank.slow.figure.time, rank.slow.figure.of], ["ttft", 90]);
  assert.deepEqual(await answerTo(t, "--objective", "e2e-mean"), whole, "the same again");
  const [id] = whole.ahead as [string];
  const one = await answerTo(t, "--request", id);
  assert.equal(one.request?.requestId, id);
  assert.equal(one.slow.requests, 1);
  assert.deepEqual(await answerTo(t, "--request", `chatcmpl-${id}`), one, "by the id in the answer's body");
  for (const { slow, tokens } of [whole, rank, one]) {
    const sum = slow.parts.reduce((all, { micros }) => all + micros, 0);
    assert.ok(Math.abs(sum - slow.micros) < 1e-6 * slow.micros);
    assert.equal(tokens.hit + tokens.losses.reduce((all, one) => all + one.tokens, 0), tokens.possible);
  }
});

test("of an answer in one piece, which has no first token, another time is offered and no table of nothing", async (t) => {
  const trace = join(FOLDER, "one-piece");
  const writer = new TraceWriter(trace);
  for (const item of injectedTrace({ cause: "index", seed: 5, conversations: 30 })) {
    if (item.kind !== "record" || item.input.kind !== "first-token" || item.input.requestId !== "request_0")
      await writer.write(item);
  }
  await writer.close();
  const { out, code } = await ask(t, trace, ...ENGINE, "--request", "request_0");
  assert.equal(code, 0);
  assert.match(
    out.replaceAll("\n", " "),
    /^TTFT of request_0: not known, since its answer came in one piece, .*--objective e2e-mean/,
  );
  assert.doesNotMatch(out, /NaN/);
  const all = await ask(t, trace, ...ENGINE);
  assert.match(all.out.replaceAll("\n", " "), /; 1 more came in one piece/);
  assert.doesNotMatch(all.out, /NaN/);
  const whole = await ask(t, trace, ...ENGINE, "--request", "request_0", "--objective", "e2e-mean");
  assert.match(whole.out.replaceAll("\n", " "), /E2E of (the )?request_0/);
});

test("a workload that nobody ran is explained as it is simulated; -o writes the answer", async (t) => {
  const workload = join(FOLDER, "workload.jsonl");
  const lines = Array.from({ length: 60 }, (_, i) =>
    JSON.stringify({ timestamp: 40 * i, input_length: 700, output_length: 20, hash_ids: [i % 5, 1_000 + i] }),
  );
  writeFileSync(workload, `${lines.join("\n")}\n`);
  const file = join(FOLDER, "answer.json");
  const { code, out } = await ask(t, workload, ...ENGINE, "--in-force", "round-robin", "-o", file);
  assert.equal(code, 0);
  assert.match(out, /\(simulated\)/);
  const { slow, tokens } = JSON.parse(readFileSync(file, "utf8")) as WhyAnswer;
  assert.equal(slow.isObserved, false);
  assert.equal(tokens.requests, 60);
});

test("of the same requests a hundred times as fast the load is what is slower, and what a request takes by itself is not", async (t) => {
  const partsAt = async (everyMillis: number): Promise<ReadonlyMap<string, number>> => {
    const workload = join(FOLDER, `every-${everyMillis}.jsonl`);
    const lines = Array.from({ length: 60 }, (_, i) =>
      JSON.stringify({
        timestamp: everyMillis * i,
        input_length: 700,
        output_length: 20,
        hash_ids: [1_000 + i, 2_000 + i],
      }),
    );
    writeFileSync(workload, `${lines.join("\n")}\n`);
    const { out } = await ask(
      t,
      workload,
      ...ENGINE,
      "--in-force",
      "round-robin",
      "--against",
      "round-robin",
      "--json",
    );
    const { slow } = JSON.parse(out) as WhyAnswer;
    return new Map(slow.parts.map(({ part, micros }) => [part, micros]));
  };
  const [calm, busy] = [await partsAt(500), await partsAt(5)];
  assert.ok(busy.get("load")! > busy.get("own")!, JSON.stringify([...busy]));
  assert.ok(Math.abs(calm.get("load")!) < 0.1 * calm.get("own")!, JSON.stringify([...calm]));
  assert.ok(Math.abs(busy.get("own")! / calm.get("own")! - 1) < 0.1, JSON.stringify([[...calm], [...busy]]));
});

test("what cannot be asked is refused with what is accepted", async (t) => {
  const cases: readonly [readonly string[], RegExp][] = [
    [[join(FOLDER, "missing")], /why: expected a trace or a workload, got .*missing, which is not there/],
    [
      [TRACE, "--request", "nobody"],
      /--request: expected one of the \d+ requests of .* that can be simulated, by its answer's x-request-id or id, got nobody/,
    ],
    [[TRACE, "--objective", "speed"], /Allowed choices are ttft-mean/],
    [[TRACE, "--percentile", "100"], /--percentile/],
    [[TRACE, "--endpoints", "8"], /--endpoints: expected with a foreign workload/],
    [[TRACE, "-o", FOLDER], /--output: expected a file, got the folder/],
  ];
  for (const [words, expected] of cases) {
    const { code, said } = await ask(t, ...(words as [string]), ...ENGINE);
    assert.notEqual(code, 0);
    assert.match(said, expected);
  }
});
