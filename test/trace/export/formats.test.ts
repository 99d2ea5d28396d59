import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import fc from "fast-check";
import { azureLine } from "#trace/export/azure-line.ts";
import { blisResult } from "#trace/export/blis-result.ts";
import { BLIS_CSV_HEADER, blisHeader, blisRow } from "#trace/export/blis-trace.ts";
import { LineWriter } from "#trace/export/line-writer.ts";
import { mooncakeLine } from "#trace/export/mooncake-line.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { AZURE_HEADER } from "#trace/import/azure.ts";
import { readBlisTrace } from "#trace/import/blis-trace.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { answersApart, apartNote } from "#trace/transform/answers-apart.ts";
import type { TrafficRequest } from "#trace/transform/traffic.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { collected, streamed, workloads } from "../transform/workload-samples.ts";

const FOLDER = mkdtempSync(join(tmpdir(), "gnomon-export-"));
after(() => rmSync(FOLDER, { recursive: true, force: true }));
const RUNS = { numRuns: 25 };
let files = 0;

function file(name: string, text: string): string {
  const path = join(FOLDER, `${files++}-${name}`);
  writeFileSync(path, text);
  return path;
}

function text(line: string | { readonly refused: string }): string {
  assert.ok(typeof line === "string", "the format takes it");
  return line;
}

async function imported(path: string) {
  const { requests, report } = await openWorkload(path, { ...IMPORT_DEFAULTS, gridMillis: 0 });
  return { requests: await collected(requests), report };
}

/** Their arrivals are known: a reader does not know which of these were to wait for a turn before. */
function timed(requests: readonly WorkloadRequest[]): WorkloadRequest[] {
  return requests.map((request, index) => ({
    ...request,
    index,
    thinkMicros: undefined,
    arrivalMicros: request.arrivalMicros + 1,
  }));
}

test("a workload file gives back every field of every request, also compressed", async () => {
  for (const name of ["w.jsonl", "w.jsonl.zst", "w.jsonl.gz"])
    await fc.assert(
      fc.asyncProperty(workloads, async (requests) => {
        const path = join(FOLDER, `${files++}-${name}`);
        const writer = new LineWriter(path);
        await writer.write(workloadFileHeader(["drawn"]));
        for (const request of requests) await writer.write(workloadLine(request));
        await writer.close();
        if (requests.length === 0) return;
        const back = await imported(path);
        assert.equal(back.report.format, "workload");
        assert.deepEqual(back.requests, inSendingOrder(requests));
      }),
      RUNS,
    );
});

const LIST = { ...single(90), outputTokens: 36, sequences: 4, tokensByPrompt: [60, 30], session: "s" };

test("a workload file has how many answers there were and what prompts; what cannot be is refused", async () => {
  const line = (more: object) => workloadLine({ ...LIST, ...more });
  const lines = [line({}), line({ sequences: 1, session: "" }), line({ tokensByPrompt: [1, 2, 3, 4, 5], session: "" })];
  const back = await imported(file("list.jsonl", workloadFileHeader([]) + lines.join("")));
  assert.deepEqual(back.requests, [LIST]);
  assert.equal(back.report.refusedTotal, 2);
});

test("for formats of one length a request each answer is a request: as long as it was, and the first goes on", async () => {
  const observed = { endpoint: "e", outcome: "ok", ttftMicros: 100, e2eMicros: 1_000, cachedTokens: 16 } as const;
  const first = { id: "a", request: { ...LIST, blockIds: Float64Array.of(1, 2, 3), thinkMicros: 5 }, observed };
  const plain = { id: "b", request: single(5), observed };
  const counts = { apart: 0 };
  const apart = await collected(answersApart(streamed([first, plain]), counts));
  assert.deepEqual(
    apart.map(({ id, request }) => [id, request.index, request.promptTokens, request.outputTokens, request.session]),
    [
      ["a", 0, 60, 9, "s"],
      ["a#1", 1, 60, 9, "s#0#1"],
      ["a#2", 2, 30, 9, "s#0#2"],
      ["a#3", 3, 30, 9, "s#0#3"],
      ["b", 4, 5, 3, ""],
    ],
  );
  assert.deepEqual(
    apart.map(({ request }) => request.blockIds?.length),
    [3, 3, undefined, undefined, undefined],
  );
  assert.deepEqual(
    apart.map((one) => one.observed?.cachedTokens),
    [NaN, NaN, NaN, NaN, 16],
  );
  assert.ok(apart.every(({ request }) => request.sequences === undefined && request.tokensByPrompt === undefined));
  assert.deepEqual([counts.apart, apartNote({ apart: 0 })], [1, undefined]);
});

test("a workload file holds no prompt", () => {
  const line = workloadLine({ ...single(16), text: "the secret", tokenIds: Int32Array.of(4711) });
  assert.doesNotMatch(line, /secret|4711/);
});

test("a workload file of another version is refused; turns that are given twice are counted", async () => {
  const other = file("v2.jsonl", `${JSON.stringify({ format: "gnomon-workload", version: 2 })}\n`);
  await assert.rejects(
    imported(other),
    (error: unknown) => error instanceof ImportError && /version: expected 1, got 2/.test(error.message),
  );
  const line = workloadLine({ ...single(16), session: "s", turn: 3 });
  const { requests, report } = await imported(file("twice.jsonl", `${workloadFileHeader([])}${line}${line}not json\n`));
  assert.equal(requests.length, 1);
  assert.deepEqual([...report.refused.values()], [1, 1]);
});

test("Mooncake lines are read back with their times and lengths, and prefixes of 512 tokens are shared exactly as before", async () => {
  const blocksShared = (a: Float64Array, b: Float64Array, tokens: number) => {
    let shared = 0;
    while (shared < a.length && shared < b.length && a[shared] === b[shared]) shared++;
    return Math.floor((shared * tokens) / 512);
  };
  await fc.assert(
    fc.asyncProperty(workloads, async (drawn) => {
      const requests = timed(drawn);
      if (requests.length === 0) return;
      const back = await imported(file("m.jsonl", requests.map((request) => text(mooncakeLine(request))).join("")));
      assert.equal(back.report.refusedTotal, 0);
      const origin = requests[0]!.arrivalMicros;
      back.requests.forEach((request, i) => {
        assert.equal(request.promptTokens, requests[i]!.promptTokens);
        assert.equal(request.outputTokens, requests[i]!.outputTokens);
        assert.ok(Math.abs(request.arrivalMicros - (requests[i]!.arrivalMicros - origin)) <= 1);
        for (let j = 0; j < i; j++) {
          const full = Math.floor(Math.min(requests[i]!.promptTokens, requests[j]!.promptTokens) / 512);
          const expected = Math.min(full, blocksShared(requests[i]!.blockIds!, requests[j]!.blockIds!, 16));
          const found = Math.min(full, blocksShared(request.blockIds!, back.requests[j]!.blockIds!, 512));
          assert.equal(found, expected, `requests ${j} and ${i}`);
        }
      });
    }),
    RUNS,
  );
});

test("Mooncake's own ids stay as they are", () => {
  const request = { ...single(1_100), blockTokens: 512, blockIds: Float64Array.of(0, 7, 9) };
  assert.deepEqual((JSON.parse(text(mooncakeLine(request))) as { hash_ids: number[] }).hash_ids, [0, 7, 9]);
});

/** The hash ids of a prompt of so many tokens, of which these blocks of 16 are known. */
function idsOf(promptTokens: number, blockIds: readonly number[] | undefined, index = 0, blockTokens = 16): number[] {
  const blocks = blockIds === undefined ? undefined : Float64Array.from(blockIds);
  const line = mooncakeLine({ ...single(promptTokens), blockIds: blocks, blockTokens, index });
  const { hash_ids: ids } = JSON.parse(text(line)) as { hash_ids: number[] };
  for (const id of ids) assert.ok(Number.isSafeInteger(id) && id >= 0, String(id));
  return ids;
}

const countShared = (one: readonly number[], other: readonly number[]): number =>
  one.filter((id, i) => id === other[i]).length;
const chain = (count: number, from = 1): number[] => Array.from({ length: count }, (_, i) => from + i);

test("Mooncake's ids are shared as far as a prompt's blocks are known, a partial one at its end among them", () => {
  for (const [promptTokens, blocks, shared] of [
    [520, 33, 2],
    [520, 32, 1],
    [1_024, 64, 2],
    [1_024, 63, 1],
    [1_030, 64, 2],
    [1_000, 62, 2],
    [1_000, 61, 1],
    [8, 1, 1],
    [8, 0, 0],
    [16, 1, 1],
    [1_100, undefined, 0],
  ] as const) {
    const known = blocks === undefined ? undefined : chain(blocks);
    const [one, other] = [idsOf(promptTokens, known, 0), idsOf(promptTokens, known, 1)];
    assert.equal(one.length, Math.ceil(promptTokens / 512));
    assert.equal(countShared(one, other), shared, `${promptTokens} tokens, ${blocks} blocks`);
    assert.deepEqual(idsOf(promptTokens, known, 0), one);
    assert.equal(new Set([...one, ...other]).size, 2 * one.length - shared);
  }
  assert.equal(countShared(idsOf(1_100, [7, 8], 0, 512), idsOf(1_100, [7, 8], 1, 512)), 2);
});

test("Mooncake's ids differ from the block on from which prompts do", () => {
  const blocks = chain(69);
  for (const [differs, shared] of [
    [68, 2],
    [63, 1],
    [32, 1],
    [31, 0],
    [0, 0],
  ] as const) {
    const other = [...blocks.slice(0, differs), ...chain(69 - differs, 1_000)];
    assert.equal(countShared(idsOf(1_100, blocks), idsOf(1_100, other)), shared, `from block ${differs}`);
  }
  // Both halves of an id count, and where it stands.
  assert.equal(countShared(idsOf(8, [5]), idsOf(8, [5 + 2 ** 32])), 0);
  assert.equal(countShared(idsOf(8, [5]), idsOf(8, [6])), 0);
  assert.equal(new Set(idsOf(1_024, chain(64).fill(5))).size, 2);
});

test("Mooncake has no line for a turn whose time is not known, and one for any other", () => {
  const turn = { ...single(16), session: "s", turn: 1, thinkMicros: 5 };
  assert.deepEqual(mooncakeLine(turn), { refused: "follow-up turn without an arrival time" });
  for (const known of [
    { ...turn, arrivalMicros: 1 },
    { ...turn, thinkMicros: undefined },
  ])
    assert.equal((JSON.parse(text(mooncakeLine(known))) as { turn_id: number }).turn_id, 1);
});

test("Azure rows are read back with their times and lengths", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, async (drawn) => {
      const requests = timed(drawn);
      if (requests.length === 0) return;
      const rows = requests.map((request) => text(azureLine(request, 946_684_800_000_000)));
      const back = await imported(file("a.csv", `${AZURE_HEADER}\n${rows.join("")}`));
      assert.deepEqual(
        back.requests.map(({ arrivalMicros, promptTokens, outputTokens }) => [
          arrivalMicros,
          promptTokens,
          outputTokens,
        ]),
        requests.map((one) => [one.arrivalMicros - requests[0]!.arrivalMicros, one.promptTokens, one.outputTokens]),
      );
    }),
    RUNS,
  );
});

test("a TraceV2 of ours is read back with what was observed; what ended otherwise than ok is counted", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, async (drawn) => {
      const traffic = timed(drawn).map((request, i): TrafficRequest => ({
        id: `id "${i}", quoted`,
        request: { ...request, turn: request.session === "" ? 0 : request.turn },
        observed: {
          endpoint: "",
          outcome: i % 5 === 4 ? "aborted" : "ok",
          ttftMicros: 10 + i,
          e2eMicros: 500 + i,
          cachedTokens: NaN,
        },
      }));
      const path = file("b.csv", BLIS_CSV_HEADER + traffic.map((one) => text(blisRow(one))).join(""));
      writeFileSync(path.replace(".csv", ".yaml"), blisHeader("real"));
      const report = new ImportReport(path, "blis", false);
      const back = await collected(readBlisTrace(path, report));
      const ok = traffic.filter(({ observed }) => observed?.outcome === "ok");
      assert.equal(report.refused.get("status is not ok") ?? 0, traffic.length - ok.length);
      assert.deepEqual(
        back.map(({ id, request, observed }) => [
          id,
          request.promptTokens,
          request.outputTokens,
          request.session,
          request.turn,
          observed,
        ]),
        ok.map(({ id, request, observed }) => [
          id,
          request.promptTokens,
          request.outputTokens,
          request.session,
          request.turn,
          observed,
        ]),
      );
    }),
    RUNS,
  );
});

test("a TraceV2 of another version, without its columns, or with an id twice is refused or counted", async () => {
  const row = text(blisRow({ id: "a", request: single(5), observed: undefined }));
  const path = file("v.csv", BLIS_CSV_HEADER + row + row);
  const { requests, report } = await imported(path);
  assert.equal(requests.length, 1);
  assert.equal(report.refused.get("request_id that was given already"), 1);
  writeFileSync(path.replace(".csv", ".yaml"), "trace_version: 2\n");
  await assert.rejects(imported(path), /trace_version: expected 3, got 2/);
  const short = file("short.csv", "request_id,client_id,tenant_id\na,b,c\n");
  await assert.rejects(imported(short), /expected the columns of a TraceV2, without slo_class/);
});

test("groups of a TraceV2 share their prefix and nothing else", async () => {
  const columns = BLIS_CSV_HEADER.trim().split(",");
  const row = (id: string, group: string) => {
    const cells = text(blisRow({ id, request: single(40), observed: undefined }))
      .trim()
      .split(",");
    cells[columns.indexOf("prefix_group")] = group;
    cells[columns.indexOf("prefix_length")] = "64";
    return `${cells.join(",")}\n`;
  };
  const { requests } = await imported(file("g.csv", BLIS_CSV_HEADER + row("1", "x") + row("2", "x") + row("3", "y")));
  const [a, b, c] = requests.map(({ blockIds }) => [...blockIds!]);
  assert.equal(a!.length, 4);
  assert.deepEqual(a, b);
  assert.equal(
    c!.some((id) => a!.includes(id)),
    false,
  );
  assert.equal(requests[0]!.promptTokens, 104, "the group's prefix and the own rest");
});

test("results for BLIS have its fields; what was not answered whole has no place there", () => {
  const observed = { endpoint: "", outcome: "ok", ttftMicros: 100, e2eMicros: 1_000, cachedTokens: NaN } as const;
  const one = { id: "a", request: { ...single(5), outputTokens: 10 }, observed };
  const result = JSON.parse(text(blisResult(one))) as Record<string, unknown>;
  assert.deepEqual(Object.keys(result), [
    "request_id",
    "ttft_us",
    "e2e_us",
    "input_tokens",
    "output_tokens",
    "slo_class",
    "model",
    "itl_mean_us",
  ]);
  assert.equal(result["itl_mean_us"], 100);
  assert.deepEqual(blisResult({ ...one, observed: { ...observed, outcome: "failed" } }), {
    refused: "ended as failed",
  });
  assert.deepEqual(blisResult({ ...one, observed: undefined }), { refused: "nothing was observed of it" });
});

test("a file that is there is not written over", async () => {
  const path = file("there.jsonl", "mine");
  const writer = new LineWriter(path);
  await writer.write("theirs");
  await assert.rejects(writer.close(), { code: "EEXIST" });
  assert.ok(existsSync(path));
  assert.equal(readFileSync(path, "utf8"), "mine");
});

/** Conversations by their first turn, the turns of each together. */
function inSendingOrder(requests: readonly WorkloadRequest[]): WorkloadRequest[] {
  const groups = Map.groupBy(requests, ({ session, index }) => (session === "" ? `single ${index}` : session));
  return [...groups.values()].flat().map((request, index) => ({ ...request, index }));
}

function single(promptTokens: number): WorkloadRequest {
  return { ...LENGTHS_ONLY, index: 0, arrivalMicros: 0, promptTokens, outputTokens: 3 };
}
