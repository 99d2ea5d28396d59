import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { blisResult } from "#trace/export/blis-result.ts";
import { BLIS_CSV_HEADER, blisRow } from "#trace/export/blis-trace.ts";
import { readBlisResult } from "#trace/import/blis-result.ts";
import { detectFormat } from "#trace/import/detect-format.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import type { TrafficRequest } from "#trace/transform/traffic.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const TRAFFIC: readonly TrafficRequest[] = Array.from({ length: 6 }, (_, i) => ({
  id: `r${i}`,
  request: {
    ...LENGTHS_ONLY,
    index: i,
    arrivalMicros: 1000 * i,
    promptTokens: 50 + i,
    outputTokens: 1 + i,
    sloClass: "standard",
    model: "m",
  },
  observed: {
    endpoint: "",
    outcome: "ok",
    ttftMicros: 30_000 + i,
    e2eMicros: 30_000 + 9_000 * i + i,
    cachedTokens: NaN,
  },
}));

async function readAll(path: string, arrivals: string | undefined) {
  const report = new ImportReport(path, "blis-result", false);
  const all: TrafficRequest[] = [];
  for await (const one of readBlisResult(path, arrivals, report)) all.push(one);
  return { all, report };
}

function textOf(line: string | { readonly refused: string }): string {
  assert.ok(typeof line === "string");
  return line;
}

const rowsOf = (traffic: readonly TrafficRequest[]) => traffic.map((one) => textOf(blisRow(one))).join("");
const listOf = (traffic: readonly TrafficRequest[]) =>
  `[${traffic.map((one) => textOf(blisResult(one))).join(",\n")}]\n`;

test("results and the TraceV2 that was replayed come back together as they were", async () => {
  await using folder = await temporaryFolder();
  const [results, trace] = [join(folder.path, "results.json"), join(folder.path, "trace.csv")];
  await writeFile(results, listOf(TRAFFIC.toReversed()));
  await writeFile(trace, `${BLIS_CSV_HEADER}${rowsOf(TRAFFIC)}`);
  assert.equal((await detectFormat(results)).format, "blis-result");
  const { all, report } = await readAll(results, trace);
  assert.deepEqual(
    all.map(({ id, request: { arrivalMicros, promptTokens, outputTokens, sloClass, model }, observed }) => ({
      id,
      arrivalMicros,
      promptTokens,
      outputTokens,
      sloClass,
      model,
      observed,
    })),
    TRAFFIC.map(({ id, request: { arrivalMicros, promptTokens, outputTokens, sloClass, model }, observed }) => ({
      id,
      arrivalMicros,
      promptTokens,
      outputTokens,
      sloClass,
      model,
      observed,
    })),
  );
  assert.deepEqual([report.accepted, report.refusedTotal], [6, 0]);
});

test("alone they have lengths and times, and are no workload", async () => {
  await using folder = await temporaryFolder();
  const results = join(folder.path, "results.json");
  // As BLIS indents them, with ids that are numbers.
  const list = [
    {
      request_id: 0,
      ttft_us: 5,
      e2e_us: 9.5,
      input_tokens: 3,
      output_tokens: 2,
      slo_class: "",
      model: "m",
      itl_mean_us: 4.5,
    },
  ];
  await writeFile(results, JSON.stringify(list, undefined, 2));
  const { all } = await readAll(results, undefined);
  assert.deepEqual([all[0]?.id, all[0]?.request.arrivalMicros, all[0]?.observed?.e2eMicros], ["0", 0, 10]);
  await assert.rejects(openWorkload(results, IMPORT_DEFAULTS), /which do not hold when requests were sent.*--arrivals/);
});

test("every result is taken or counted", async () => {
  await using folder = await temporaryFolder();
  const [results, trace] = [join(folder.path, "results.json"), join(folder.path, "trace.csv")];
  const lines: unknown[] = JSON.parse(listOf(TRAFFIC)) as unknown[];
  const bad = [
    ...lines,
    lines[0],
    7,
    { request_id: "r9", ttft_us: -1, e2e_us: 1 },
    { ...(lines[1] as object), request_id: "unsent" },
  ];
  await writeFile(results, JSON.stringify(bad));
  await writeFile(trace, `${BLIS_CSV_HEADER}${rowsOf(TRAFFIC.slice(0, 5))}`);
  const { all, report } = await readAll(results, trace);
  assert.equal(all.length, 5);
  assert.equal(report.records, report.accepted + report.refusedTotal);
  assert.deepEqual([...report.adjusted.values()], []);
  await writeFile(trace, `${BLIS_CSV_HEADER}${rowsOf(TRAFFIC)}`);
  await writeFile(results, listOf(TRAFFIC.slice(2)));
  const { report: fewer } = await readAll(results, trace);
  assert.deepEqual([...fewer.adjusted], [[`request of ${trace} without a result`, 2]]);
  assert.deepEqual(Object.fromEntries(report.refused), {
    "request_id that was given already": 1,
    "not a JSON object": 1,
    "ttft_us or e2e_us is not a time >= 0": 1,
    "request_id that is not in the TraceV2": 2,
  });
  await writeFile(results, '[{"request_id":1,"ttft_us":2,"e2e_us"');
  await assert.rejects(
    readAll(results, undefined),
    (error) => error instanceof ImportError && /torn/.test(error.message),
  );
});
