import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { zstdCompressSync } from "node:zlib";
import { loadProfile } from "#config/profile-file.ts";
import { routerOf } from "#shadow/recorded/replay.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { explainCommand } from "#cli/explain/explain.ts";
import { drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { inProcess } from "../in-process.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-explain-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));

const profiles = { gnomon: loadProfile("gnomon").spec };
const header: TraceHeader = { ...HEADER, router: { ...HEADER.router, profiles, defaultProfile: "gnomon" } };
const records = drawTraffic(routerOf(header), 11, 400);
const trace = join(FOLDER, "trace.ndjson.zst");
const encoder = new LineEncoder({ blockTokens: 16 });
const lines = [encoder.header(header), ...records.map(({ input, decision }) => encoder.record(input, decision))];
writeFileSync(trace, zstdCompressSync(`${lines.join("\n")}\n`));

test("of a request in a trace every decision is shown, with what was expected and what came", async (t) => {
  const ended = records.find(
    ({ input }) => input.kind === "request-finished" && input.outcome === "ok" && input.cachedTokens !== undefined,
  )!.input as { readonly requestId: string; readonly at: number; readonly cachedTokens: number };
  const decisions = records.filter(({ decision }) => decision?.requestId === ended.requestId);
  const { decision } = decisions.at(-1)!;
  assert.ok(decision?.kind === "routed" && decision.forecast !== undefined);
  const { code, out } = await inProcess(
    t,
    [explainCommand()],
    ["explain", "--trace", trace, "--request", ended.requestId],
  );
  assert.equal(code, 0);
  assert.equal(out.match(/^profile gnomon/gm)?.length, decisions.length);
  const ttft = Math.round(decision.forecast.ttftMicros / 1_000);
  assert.match(out, new RegExp(`first token expected in ${ttft} ms`));
  assert.match(out, new RegExp(`^then: .*; ${ended.cachedTokens} tokens were cached`, "m"));
});

test("a request is found by the id that its client saw: the answer's, and one that the client gave", async (t) => {
  const ids = [...new Set(records.flatMap(({ decision }) => decision?.requestId ?? []))];
  const [id] = ids;
  const shown = async (...argv: readonly string[]): Promise<string> => {
    const { code, out, said } = await inProcess(t, [explainCommand()], ["explain", ...argv]);
    assert.equal(code, 0, said);
    return out;
  };
  const plain = await shown("--trace", trace, "--request", id!);
  assert.equal(await shown("--trace", trace, "--request", `chatcmpl-${id}`), plain);
  const page = join(FOLDER, "decisions.json");
  const [view] = (await shown("--trace", trace, "--request", id!, "--json")).split("\n");
  const others = [`${id}.0`, `${id}.1f`, `${id}x`, `x${id}`].map((requestId) => ({
    ...(JSON.parse(view!) as object),
    requestId,
  }));
  writeFileSync(page, JSON.stringify({ decisions: others }));
  const found = (await shown("--decision", page, "--request", `cmpl-${id}`, "--json")).trim().split("\n");
  assert.deepEqual(
    found.map((line) => (JSON.parse(line) as { requestId: string }).requestId),
    [`${id}.0`, `${id}.1f`],
    "two requests of a client that gave both one id, and nobody else's",
  );
  const none = await inProcess(t, [explainCommand()], ["explain", "--decision", page, "--request", "nobody"]);
  assert.match(none.said, /expected a decision on request nobody in .*, got 4 others/);
});

test("without a request it is the trace's last decision; what is not there is refused", async (t) => {
  const last = records.findLast(({ decision }) => decision !== undefined)!.decision!;
  const { out } = await inProcess(t, [explainCommand()], ["explain", "--trace", trace, "--json"]);
  const view = JSON.parse(out) as { readonly sequence: number; readonly at: string };
  assert.equal(view.sequence, last.sequence);
  assert.equal(Date.parse(view.at), Math.floor((header.startWallMicros + last.at) / 1_000));
  for (const [argv, problem] of [
    [["--trace", trace, "--request", "nobody"], /expected a decision on request nobody/],
    [["--trace", FOLDER, "--state", trace], /expected one of --state, --decision and --trace, got 2/],
    [["--request", "r", "--state", trace], /expected --trace or --decision beside --request, got --state/],
    [["--trace", "nowhere"], /expected a recorded trace, got nowhere/],
  ] as const) {
    const { code, said } = await inProcess(t, [explainCommand()], ["explain", ...argv]);
    assert.notEqual(code, 0);
    assert.match(said, problem);
  }
});

test("what a gateway answers in place of decisions is shown, not what it lacks of one", async (t) => {
  const file = join(FOLDER, "refused.json");
  writeFileSync(file, JSON.stringify({ error: { message: "send a token", code: 401 } }));
  const { code, said } = await inProcess(t, [explainCommand()], ["explain", "--decision", file]);
  assert.notEqual(code, 0);
  assert.match(said, /expected decisions in .*refused\.json, got a gateway's error: send a token\s*$/);
});
