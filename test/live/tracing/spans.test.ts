import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";

import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { CountedExporter } from "#live/tracing/counted-exporter.ts";
import { openTracing } from "#serve/observe/live-tracing.ts";
import { CHAT, NEVER_OPEN, type RigOptions, ask, startRig } from "../gateway/rig.ts";
import { type Reply, chatAnswer, headerOf, jsonReply, streamOf } from "../gateway/stub-engine.ts";

const ok: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("a secret answer")));
const broken: Reply = (_r, s) => void s.write(jsonReply(500, { error: "no" }));
const stream: Reply = (_r, s) => void s.write(streamOf(3));
const PARENT = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const parentHeader = (sampled: boolean) => `00-${PARENT.traceId}-${PARENT.spanId}-${sampled ? "01" : "00"}`;

interface Value {
  readonly stringValue?: string;
  readonly intValue?: number;
  readonly doubleValue?: number;
}

/** A span as OTLP has it in JSON. */
interface Sent {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly { readonly key: string; readonly value: Value }[];
  readonly events: readonly { readonly name: string }[];
  readonly status: { readonly code: number };
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly { readonly key: string; readonly value: Value }[] };
    readonly scopeSpans: readonly { readonly spans: readonly Sent[] }[];
  }[];
}

/** A collector: what it got over HTTP, decoded. */
async function collector(t: TestContext, status = 200) {
  const spans: Sent[] = [];
  const texts: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const services = new Set<string | undefined>();
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      texts.push(text);
      headers.push(incoming.headers);
      for (const { resource, scopeSpans } of (JSON.parse(text) as Export).resourceSpans) {
        services.add(resource.attributes.find(({ key }) => key === "service.name")?.value.stringValue);
        for (const scope of scopeSpans) spans.push(...scope.spans);
      }
      response.writeHead(status, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`,
    spans,
    texts,
    headers,
    services,
  };
}

async function traced(t: TestContext, replies: readonly Reply[], tracing: object, options: RigOptions = {}) {
  const faults: FaultEvent[] = [];
  const log = { report: (event: FaultEvent) => void faults.push(event) };
  const live = await openTracing(CONFIG_SCHEMA.parse({ tracing }), { HEADERS: "x-key=abc, other=1" }, log);
  const rig = await startRig(replies, { ...options, ...(live.spans && { spans: live.spans }) });
  t.after(() => rig.close());
  return { rig, live, faults };
}

const fact = (span: Sent, key: string) => {
  const value = span.attributes.find((one) => one.key === key)?.value;
  return value?.stringValue ?? value?.intValue ?? value?.doubleValue;
};

test("a request that is tried twice has a span of its own, one a decision and one an attempt; the engines get their attempt's context", async (t) => {
  const { url, spans, texts, headers, services } = await collector(t);
  const tracing = { url, sampleShare: 1, serviceName: "router", headersEnv: "HEADERS" };
  const { rig, live } = await traced(t, [broken, ok], tracing, { breaker: NEVER_OPEN });
  const got = await ask(rig.url, CHAT, {
    headers: { traceparent: parentHeader(true), authorization: "Bearer sk-secret" },
  });
  assert.equal(got.status, 200);
  await live.stop();
  assert.deepEqual(live.counts, { sent: 5, failed: 0 });
  assert.deepEqual(spans.map(({ name }) => name).sort(), [
    "POST /v1/chat/completions",
    "attempt",
    "attempt",
    "decision",
    "decision",
  ]);
  assert.ok(spans.every(({ traceId }) => traceId === PARENT.traceId));
  const gateway = spans.find(({ kind }) => kind === 2)!;
  assert.equal(gateway.parentSpanId, PARENT.spanId);
  assert.ok(spans.every((span) => span === gateway || span.parentSpanId === gateway.spanId));
  assert.deepEqual(
    ["http.response.status_code", "gnomon.outcome", "gnomon.attempts", "gnomon.endpoint", "gen_ai.request.model"].map(
      (key) => fact(gateway, key),
    ),
    [200, "ok", 2, "b", "tiny"],
  );
  const attempts = spans
    .filter(({ name }) => name === "attempt")
    .sort((a, b) => Number(fact(a, "gnomon.attempt")) - Number(fact(b, "gnomon.attempt")));
  assert.deepEqual(
    attempts.map((span) => [fact(span, "gnomon.endpoint"), span.status.code, fact(span, "error.type")]),
    [
      ["a", 2, "status"],
      ["b", 0, undefined],
    ],
  );
  rig.engines.forEach((engine, i) => {
    const { traceId, spanId } = attempts[i]!;
    assert.equal(headerOf(engine.requests[0]!, "traceparent"), `00-${traceId}-${spanId}-01`);
  });
  for (const span of spans) {
    assert.ok(BigInt(span.startTimeUnixNano) <= BigInt(span.endTimeUnixNano));
    assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(gateway.startTimeUnixNano));
  }
  assert.deepEqual([...services], ["router"]);
  assert.deepEqual([headers[0]!["x-key"], headers[0]!["other"]], ["abc", "1"]);
  for (const secret of ["sk-secret", "hello to the world", "a secret answer"])
    assert.ok(!texts.join().includes(secret), secret);
});

test("a stream's attempt has its first token, and a refused request a span alone with its reason", async (t) => {
  const { url, spans } = await collector(t);
  const { rig, live } = await traced(t, [stream], { url, sampleShare: 1 });
  await ask(rig.url, { ...CHAT, stream: true });
  assert.equal((await ask(rig.url, "{", {})).status, 400);
  await live.stop();
  const attempt = spans.find(({ name }) => name === "attempt")!;
  assert.deepEqual(
    attempt.events.map(({ name }) => name),
    ["first token"],
  );
  const refused = spans.find((span) => fact(span, "http.response.status_code") === 400)!;
  assert.equal(fact(refused, "gnomon.reason"), "bad-request");
  assert.equal(spans.filter(({ traceId }) => traceId === refused.traceId).length, 1);
});

test("a client that was not sampled is not, and its engine gets its own context; of the others the share decides", async (t) => {
  const { url, spans } = await collector(t);
  const { rig, live } = await traced(t, [ok], { url, sampleShare: 0 });
  await ask(rig.url, CHAT, { headers: { traceparent: parentHeader(false) } });
  await ask(rig.url, CHAT);
  await ask(rig.url, CHAT, { headers: { traceparent: parentHeader(true) } });
  await ask(rig.url, CHAT, { headers: { traceparent: "no context" } });
  await live.stop();
  assert.equal(new Set(spans.map(({ traceId }) => traceId)).size, 1);
  const [first, second] = rig.engines[0]!.requests.map((request) => headerOf(request, "traceparent"));
  assert.deepEqual([first, second], [parentHeader(false), undefined]);
  const all = await collector(t);
  const half = await traced(t, [ok], { url: all.url, sampleShare: 0.5 });
  for (let i = 0; i < 60; i++) await ask(half.rig.url, CHAT);
  await half.live.stop();
  const share = all.spans.filter(({ kind }) => kind === 2).length / 60;
  assert.ok(share > 0.2 && share < 0.8, `${share}`);
});

test("a collector that is gone, refuses or hangs changes nothing for clients, and nothing is kept of their requests", async (t) => {
  const refusing = await collector(t, 503);
  for (const url of ["http://127.0.0.1:1/v1/traces", refusing.url]) {
    const tracing = { url, sampleShare: 1, sendMillis: 10, timeoutMillis: 50, headersEnv: "HEADERS" };
    const { rig, live, faults } = await traced(t, [ok], tracing);
    for (let i = 0; i < 5; i++) assert.equal((await ask(rig.url, CHAT)).status, 200);
    assert.equal((live.spans as unknown as { size: number }).size, 0);
    await live.stop();
    assert.deepEqual(live.counts, { sent: 0, failed: 15 });
    const { host } = new URL(url);
    assert.deepEqual(
      faults.map(({ kind, detail }) => [kind, detail.startsWith(`${host}: `)]),
      [["spans-failed", true]],
      "once a row of failures",
    );
    assert.doesNotMatch(JSON.stringify(faults), /abc/);
  }
});

test("of a row of failures the first is reported, and then that spans are taken again and how many were lost", () => {
  const noted: (string | number)[] = [];
  const { SUCCESS, FAILED } = ExportResultCode;
  const codes = [FAILED, FAILED, SUCCESS, SUCCESS, FAILED];
  const inner = {
    export: (_: unknown, ended: (result: ExportResult) => void) =>
      ended({ code: codes.shift()!, error: new Error("no") }),
    shutdown: () => Promise.resolve(),
  };
  const watch = {
    failed: (detail: string) => void noted.push(detail),
    recovered: (lost: number) => void noted.push(lost),
  };
  const exporter = new CountedExporter(inner, watch);
  for (const spans of [2, 3, 4, 5, 6]) exporter.export(Array<ReadableSpan>(spans), () => {});
  assert.deepEqual([noted, exporter.counts], [["no", 5, "no"], { sent: 9, failed: 11 }]);
});

test("without an address nothing is traced and no code for it is loaded", async () => {
  const live = await openTracing(CONFIG_SCHEMA.parse({}), {}, { report: () => assert.fail() });
  assert.equal(live.spans, undefined);
  await live.stop();
});
