import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type RoutedLogKind, readAccessLog } from "#trace/import/access-log.ts";
import { detectFormat } from "#trace/import/detect-format.ts";
import { ImportError, ImportReport } from "#trace/import/import-report.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const line = (record: object | string): string => `${typeof record === "string" ? record : JSON.stringify(record)}\n`;

async function read(kind: RoutedLogKind, records: readonly (object | string)[], strict = false) {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "access.jsonl");
  await writeFile(path, records.map(line).join(""));
  const { format } = await detectFormat(path);
  const report = new ImportReport(path, kind, strict);
  const log = await readAccessLog(path, kind, report);
  return { format, report, ...log };
}

const NGINX = {
  msec: "1700000010.500",
  request_time: "2.500",
  upstream_addr: "10.0.0.5:8000",
  status: "200",
  request_length: "4000",
  request_id: "n1",
};

test("nginx: a request came before its line was written, and went to the last of its upstreams", async () => {
  const retried = {
    ...NGINX,
    msec: "1700000009.000",
    request_time: "0.250",
    upstream_addr: "10.0.0.5:8000, 10.0.0.6:8000",
  };
  const { format, requests, endpoints, startWallMicros } = await read("nginx", [
    NGINX,
    { ...retried, request_id: "n2" },
  ]);
  assert.equal(format, "nginx");
  assert.deepEqual(endpoints, ["http://10.0.0.5:8000", "http://10.0.0.6:8000"]);
  assert.equal(startWallMicros, 1_700_000_008_000_000);
  assert.deepEqual(
    requests.map(({ id, request, observed }) => [id, request.arrivalMicros, observed?.endpoint, observed?.e2eMicros]),
    [
      ["n1", 0, "http://10.0.0.5:8000", 2_500_000],
      ["n2", 750_000, "http://10.0.0.6:8000", 250_000],
    ],
  );
  assert.deepEqual([requests[0]!.request.promptTokens, requests[0]!.observed?.isAnswerUnknown], [1000, true]);
});

test("Envoy: times to the microsecond, tokens where the line has them, and a status that is an error", async () => {
  const record = {
    start_time: "2026-05-17T10:00:00.123456Z",
    duration: 1500,
    upstream_host: "10.0.0.7:8000",
    response_code: 503,
    request_id: "e1",
    prompt_tokens: 700,
    completion_tokens: 20,
    session: "s",
  };
  const { format, requests, startWallMicros } = await read("envoy", [record]);
  assert.equal(format, "envoy");
  assert.equal(startWallMicros % 1_000_000, 123_456);
  const [{ request, observed }] = requests as [(typeof requests)[0]];
  assert.deepEqual([request.promptTokens, request.outputTokens, request.session], [700, 20, "s"]);
  assert.deepEqual(
    [observed?.outcome, observed?.e2eMicros, observed?.isAnswerUnknown],
    ["failed", 1_500_000, undefined],
  );
});

test("llm-d: the first of the endpoints that its picker names; its other lines are none, and none has an end", async () => {
  const about = { caller: "requestcontrol/director.go:364", ts: "2026-05-17T10:00:00Z", "x-request-id": "p1" };
  const picked = { ...about, msg: "Request handled", targetModel: "llama", endpoint: "10.0.0.5:8000,10.0.0.6:8000" };
  const { format, requests, report } = await read("llm-d", [{ ...about, msg: "EPP received request" }, picked]);
  assert.equal(format, "llm-d");
  assert.deepEqual(
    requests.map(({ id, request, observed }) => [id, request.model, observed?.endpoint]),
    [["p1", "llama", "http://10.0.0.5:8000"]],
  );
  assert.ok(Number.isNaN(requests[0]!.observed?.e2eMicros));
  assert.equal(report.records, 1);
});

test("spans: those that name an upstream, with the tokens that they count", async () => {
  const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } });
  const span = (more: readonly object[]) => ({
    spanId: "ab",
    startTimeUnixNano: "1700000000000000000",
    endTimeUnixNano: "1700000001500000000",
    attributes: [attribute("gen_ai.usage.input_tokens", "90"), ...more],
  });
  const peer = [attribute("server.address", "10.0.0.5"), attribute("server.port", "8000")];
  const spans = [span([]), span(peer), span([attribute("upstream_address", "10.0.0.6:8000")])];
  const { format, requests } = await read("otel-spans", [{ resourceSpans: [{ scopeSpans: [{ spans }] }] }]);
  assert.equal(format, "otel-spans");
  assert.deepEqual(
    requests.map(({ observed, request }) => [observed?.endpoint, observed?.e2eMicros, request.promptTokens]),
    [
      ["http://10.0.0.5:8000", 1_500_000, 90],
      ["http://10.0.0.6:8000", 1_500_000, 90],
    ],
  );
});

test("bad lines are refused by their number, and with --strict the first one is an error", async () => {
  const bad = [
    "{",
    { ...NGINX, upstream_addr: "-" },
    { ...NGINX, msec: "soon" },
    { ...NGINX, request_time: "-1" },
    { ...NGINX, status: "OK" },
    { ...NGINX, prompt_tokens: 1.5 },
  ];
  const { report, requests } = await read("nginx", [NGINX, ...bad]);
  assert.equal(requests.length, 1);
  assert.deepEqual(
    report.places.map((place) => place.replace(/^.*access\.jsonl:/, "")),
    [
      "2: not JSON",
      "3: upstream_addr is not an address",
      "4: neither msec nor time_iso8601 is a time",
      "5: request_time is not a time",
      "6: the status is not a number",
      "7: tokens are not a number up to 100000000",
    ],
  );
  await assert.rejects(read("nginx", [NGINX, ...bad], true), ImportError);
});
