import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { reproduceCommand } from "#cli/reproduce/reproduce.ts";
import { traceCommand } from "#cli/trace/trace.ts";
import { loadProfile } from "#config/profile-file.ts";
import type { Reproduction } from "#shadow/reproduce/reproduce.ts";
import { TraceWriter } from "#trace/export/trace-writer.ts";
import { foreignTraffic } from "../../shadow/reproduce/foreign-traffic.ts";
import { temporaryFolder } from "../../trace/import/temporary-folder.ts";
import { inProcess } from "../in-process.ts";

async function written(
  folder: string,
  profile: string,
  requests: number,
  routerName = "their-router",
): Promise<string> {
  const path = join(folder, "theirs");
  const writer = new TraceWriter(path);
  for (const item of foreignTraffic({ spec: loadProfile(profile).spec, requests, seed: 3, routerName }))
    await writer.write(item);
  await writer.close();
  return path;
}

const NARROW = ["--profile", "round-robin", "--profile", "load-only", "--profile", "random"];

test("the answer's first sentence names the policy, how much of what it explains, and of how many; --json has all", async (t) => {
  await using folder = await temporaryFolder();
  const path = await written(folder.path, "round-robin", 200);
  const shown = await inProcess(t, [reproduceCommand()], ["reproduce", path, ...NARROW]);
  assert.deepEqual([shown.code, shown.said], [0, ""]);
  const first = shown.out.split("\n\n")[0]!.replaceAll("\n", " ");
  assert.match(
    first,
    /decides as round-robin \(BLIS\).*: it explains 100.0 % of 100 decisions that it was not fitted to/,
  );
  const json = await inProcess(t, [reproduceCommand()], ["reproduce", path, ...NARROW, "--json"]);
  const { best, candidates } = JSON.parse(json.out) as Reproduction;
  assert.deepEqual([best.base, best.heldOut.share, best.heldOut.decisions], ["round-robin", 1, 100]);
  assert.ok(candidates > 6);
});

test("what was found is also stated as a known router has it, and nothing where the router is not known or draws", async (t) => {
  await using folder = await temporaryFolder();
  const printed = async (router: string, profile: string): Promise<string> => {
    const path = await written(join(folder.path, `${router}-${profile}`), profile, 200, router);
    return (await inProcess(t, [reproduceCommand()], ["reproduce", path, ...NARROW])).out;
  };
  assert.match(await printed("smg", "round-robin"), /^as smg's own options, .*:\n {2}--policy round_robin$/m);
  assert.doesNotMatch(await printed("their-router", "round-robin"), /own options/);
  assert.doesNotMatch(await printed("smg", "random"), /own options/);
});

test("--limit takes the first decisions, and too few are refused", async (t) => {
  await using folder = await temporaryFolder();
  const path = await written(folder.path, "round-robin", 80);
  const limited = await inProcess(t, [reproduceCommand()], ["reproduce", path, ...NARROW, "--limit", "40", "--json"]);
  const { best, left } = JSON.parse(limited.out) as Reproduction;
  assert.deepEqual([best.heldOut.decisions, left["beyond --limit"]], [20, 40]);
  const few = await inProcess(t, [reproduceCommand()], ["reproduce", path, "--limit", "10"]);
  assert.equal(few.code, 1);
  assert.match(few.said, /expected 20 decisions or more, got 10/);
});

test("what is no trace is refused by its name", async (t) => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "note.txt");
  writeFileSync(file, "no trace\n");
  for (const path of [file, join(folder.path, "absent")]) {
    const { code, said } = await inProcess(t, [reproduceCommand()], ["reproduce", path]);
    assert.equal(code, 2);
    assert.ok(said.includes(path), said);
  }
});

test("an access log becomes a trace whose decisions are explained, and states what it cannot answer", async (t) => {
  await using folder = await temporaryFolder();
  const log = join(folder.path, "access.jsonl");
  const lines = Array.from({ length: 120 }, (_, i) => ({
    msec: (1_700_000_000 + i / 10 + 0.35).toFixed(3),
    request_time: "0.350",
    upstream_addr: `10.0.0.${5 + (i % 3)}:8000`,
    status: "200",
    request_id: `q${i}`,
    prompt_tokens: "100",
    completion_tokens: "20",
  }));
  writeFileSync(log, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const out = join(folder.path, "theirs");
  const imported = await inProcess(t, [traceCommand()], ["trace", "import", log, "--router", "nginx 1", "-o", out]);
  assert.equal(imported.code, 0, imported.said);
  assert.match(imported.out, /a log has no prompts/);
  const { out: text } = await inProcess(t, [reproduceCommand()], ["reproduce", out, ...NARROW]);
  assert.match(text, /^nginx 1 decides as round-robin/);
});
