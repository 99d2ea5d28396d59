import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as fc from "fast-check";
import type { Decision } from "#core/input/decision.ts";
import { FORECAST_UNSURE } from "#core/scorer/predicted-latency.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { ScrapeRow } from "#live/keeper/fleet-keeper.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { atOnce } from "#live/base/loop-turn.ts";
import { readExposition, type SampleVisitor } from "#live/scrape/exposition.ts";
import { newCounters } from "#live/base/gateway-counters.ts";
import { Intake } from "#live/base/intake.ts";
import { GatewayMetrics, type MetricsOptions } from "#live/metrics/metrics.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import { emptyRouter } from "../discovery/fleet-under-test.ts";

class MetricsUnderTest {
  readonly directory = new EndpointDirectory();
  readonly router = emptyRouter();
  readonly intake = new Intake(this.router);
  readonly counters = newCounters();
  readonly scrapes: ScrapeRow[] = [];
  readonly metrics: GatewayMetrics;

  constructor(options: Partial<MetricsOptions> = {}) {
    this.metrics = new GatewayMetrics({
      router: this.router,
      directory: this.directory,
      keeper: {
        rows: () => this.scrapes,
        targetsRefused: 0,
        checkCounts: undefined,
        adapterLoads: { loaded: 0, failed: 0, forgotten: 0 },
      },
      counters: () => this.counters,
      recorder: () => undefined,
      processMetrics: false,
      ...options,
    });
    this.intake.listen(this.metrics);
    this.directory.listen(this.metrics);
  }

  join(id: string, models: readonly string[] = ["m"]): void {
    const entry = { id, url: "http://e", dataParallelRank: undefined, apiKey: "sk-x", detail: "", models: [] };
    this.directory.add({ ...entry, state: "ready" });
    const endpoint = { id, models, labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
    this.intake.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
  }

  arrive(id: string, model = "m"): Decision {
    const request = {
      id,
      model,
      tenant: "",
      session: "",
      sloClass: "",
      priority: 0,
      promptTokens: 100,
      promptTokensExact: false,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: { hashes: new Int32Array(0), length: 0, blockTokens: 16 },
      profile: "",
    };
    return this.intake.accept({ kind: "request-arrived", at: nowMicros(), request });
  }

  /** Samples of one name, as `{labels} value`. */
  async lines(name: string): Promise<string[]> {
    const page = await this.metrics.render();
    return page
      .split("\n")
      .filter((line) => line === name || line.startsWith(`${name} `) || line.startsWith(`${name}{`));
  }
}

function summary(changes: Partial<RequestSummary> = {}): RequestSummary {
  return {
    method: "POST",
    profile: "gnomon",
    reason: "only",
    requestId: "r",
    route: "/v1/chat/completions",
    model: "m",
    tenant: "",
    endpoint: "a",
    status: 200,
    outcome: "ok",
    stream: true,
    attempts: 1,
    ttftMicros: 50_000,
    tpotMicros: 20_000,
    queuedMicros: 0,
    e2eMicros: 2_000_000,
    promptTokens: 1000,
    cachedTokens: 600,
    outputTokens: 50,
    hitTokens: 512,
    ...changes,
  };
}

test("a finished request counts once in each family, with vLLM's buckets", async () => {
  const made = new MetricsUnderTest();
  made.join("a");
  made.metrics.finished(summary());
  made.metrics.finished(summary({ stream: false, ttftMicros: 100_000, outcome: "failed", status: 502 }));
  assert.deepEqual(await made.lines("gnomon_requests_total"), [
    'gnomon_requests_total{route="/v1/chat/completions",model="m",status="200",outcome="ok"} 1',
    'gnomon_requests_total{route="/v1/chat/completions",model="m",status="502",outcome="failed"} 1',
  ]);
  assert.deepEqual(await made.lines("gnomon_prompt_tokens_total"), ['gnomon_prompt_tokens_total{model="m"} 2000']);
  assert.deepEqual(await made.lines("gnomon_prefix_hit_tokens_total"), [
    'gnomon_prefix_hit_tokens_total{model="m"} 1024',
  ]);
  const buckets = await made.lines("gnomon_time_to_first_token_seconds_bucket");
  const streamed = buckets.filter((line) => line.includes('stream="true"'));
  assert.equal(streamed.length, 23);
  assert.equal(streamed[4], 'gnomon_time_to_first_token_seconds_bucket{le="0.04",model="m",stream="true"} 0');
  assert.equal(streamed[5], 'gnomon_time_to_first_token_seconds_bucket{le="0.06",model="m",stream="true"} 1');
  assert.equal((await made.lines("gnomon_e2e_request_latency_seconds_count"))[0]!.at(-1), "1");
});

test("what tokenizers counted, by the model that they are for", async () => {
  const tokenizers = () => [
    { model: "m", name: "huggingface", counters: { confirmed: 7, contradicted: 2 } } as const,
    { model: "", name: "estimate", counters: { learned: 5 } } as const,
  ];
  assert.deepEqual(await new MetricsUnderTest({ tokenizers }).lines("gnomon_tokenizer_events_total"), [
    'gnomon_tokenizer_events_total{for="m",tokenizer="huggingface",event="confirmed"} 7',
    'gnomon_tokenizer_events_total{for="m",tokenizer="huggingface",event="contradicted"} 2',
    'gnomon_tokenizer_events_total{for="",tokenizer="estimate",event="learned"} 5',
  ]);
  assert.deepEqual(await new MetricsUnderTest().lines("gnomon_tokenizer_events_total"), []);
});

test("law: a histogram's buckets are cumulative, end at the count, and hold every value on its side", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 4e9 }), { minLength: 1, maxLength: 40 }), async (values) => {
      const made = new MetricsUnderTest();
      made.join("a");
      for (const ttftMicros of values) made.metrics.finished(summary({ ttftMicros }));
      const found = new Map<number, number>();
      let total = 0;
      let sum = 0;
      const names = new Set(["_bucket", "_sum", "_count"].map((end) => `gnomon_time_to_first_token_seconds${end}`));
      const visit: SampleVisitor = (name, labels, value) => {
        if (name.endsWith("_bucket")) found.set(Number(labels.get("le")!.replace("+Inf", "Infinity")), value);
        else if (name.endsWith("_sum")) sum = value;
        else total = value;
      };
      atOnce(readExposition(await made.metrics.render(), names, visit));
      assert.equal(total, values.length);
      assert.equal(found.get(Infinity), total);
      assert.ok(Math.abs(sum - values.reduce((all, value) => all + value / 1e6, 0)) < 1e-6 * Math.max(1, sum));
      for (const [bound, count] of found) {
        assert.equal(count, values.filter((value) => value / 1e6 <= bound).length);
      }
    }),
    { numRuns: 30 },
  );
});

test("decisions are counted by endpoint and reason, refusals by reason", async () => {
  const made = new MetricsUnderTest();
  made.arrive("none");
  made.join("a");
  made.arrive("one");
  made.arrive("two");
  assert.deepEqual(await made.lines("gnomon_rejections_total"), ['gnomon_rejections_total{reason="no-endpoint"} 1']);
  assert.deepEqual(await made.lines("gnomon_decisions_total"), [
    'gnomon_decisions_total{endpoint="a",reason="only"} 2',
  ]);
  assert.deepEqual(await made.lines("gnomon_decision_seconds_count"), ["gnomon_decision_seconds_count 3"]);
  assert.deepEqual(made.metrics.placedRequests, { placed: 2, unsure: 0 });
  const unsure = { ...made.arrive("three"), reason: FORECAST_UNSURE } as Decision;
  made.metrics.accepted({ kind: "request-released", at: nowMicros(), requestId: "three" }, unsure, 1);
  assert.deepEqual(made.metrics.placedRequests, { placed: 4, unsure: 1 });
  assert.deepEqual(await made.lines("gnomon_ledger_decisions_total"), ["gnomon_ledger_decisions_total 4"]);
  assert.deepEqual(await made.lines("gnomon_endpoint_requests_in_flight"), [
    'gnomon_endpoint_requests_in_flight{endpoint="a"} 3',
  ]);
  assert.deepEqual(await made.lines("gnomon_endpoint_load_age_seconds"), [], "never scraped is no age");
  assert.deepEqual(await made.lines("gnomon_endpoints"), [
    'gnomon_endpoints{state="waiting"} 0',
    'gnomon_endpoints{state="ready"} 1',
    'gnomon_endpoints{state="lost"} 0',
  ]);
});

test("what clients name does not become a label unless an endpoint serves it", async () => {
  const made = new MetricsUnderTest({ modelsMax: 3 });
  made.join("a", ["m", "n", "o"]);
  for (let i = 0; i < 50; i++) made.metrics.finished(summary({ model: `made-up-${i}`, outcome: "refused" }));
  for (const model of ["m", "n", "o"]) made.metrics.finished(summary({ model }));
  const models = (await made.lines("gnomon_output_tokens_total")).map((line) => /model="([^"]*)"/.exec(line)![1]);
  assert.deepEqual(models, ["other", "m", "n"]);
  assert.deepEqual(await made.lines("gnomon_label_overflows_total"), [
    'gnomon_label_overflows_total{label="model"} 51',
    'gnomon_label_overflows_total{label="endpoint"} 0',
    'gnomon_label_overflows_total{label="tenant"} 0',
    'gnomon_label_overflows_total{label="slo_class"} 0',
  ]);
});

test("what each tenant asked for and got, in as many series as there may be", async () => {
  const made = new MetricsUnderTest({ tenantsMax: 3 });
  made.metrics.finished(summary({ tenant: "" }));
  made.metrics.finished(summary({ tenant: "acme" }));
  const limited = { outcome: "refused", attempts: 0, reason: "usage-quota", status: 429 } as const;
  const unsent = { promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined };
  made.metrics.finished(summary({ tenant: "acme", ...limited, ...unsent }));
  made.metrics.finished(summary({ tenant: "acme", outcome: "refused", status: 400, ...unsent }));
  for (const tenant of ["b", "c", "d", "acme"]) made.metrics.finished(summary({ tenant }));
  assert.deepEqual(await made.lines("gnomon_tenant_requests_total"), [
    'gnomon_tenant_requests_total{tenant="acme",outcome="ok"} 2',
    'gnomon_tenant_requests_total{tenant="acme",outcome="refused"} 2',
    'gnomon_tenant_requests_total{tenant="b",outcome="ok"} 1',
    'gnomon_tenant_requests_total{tenant="other",outcome="ok"} 2',
  ]);
  assert.deepEqual(
    await made.lines("gnomon_tenant_refusals_total"),
    ['gnomon_tenant_refusals_total{tenant="acme",reason="usage-quota"} 1'],
    "what an engine turned down was sent to it",
  );
  for (const [figure, each] of [
    ["prompt", 1000],
    ["cached", 600],
    ["output", 50],
  ] as const)
    assert.deepEqual(await made.lines(`gnomon_tenant_${figure}_tokens_total`), [
      `gnomon_tenant_${figure}_tokens_total{tenant="acme"} ${2 * each}`,
      `gnomon_tenant_${figure}_tokens_total{tenant="b"} ${each}`,
      `gnomon_tenant_${figure}_tokens_total{tenant="other"} ${2 * each}`,
    ]);
  assert.equal((await made.lines("gnomon_label_overflows_total"))[2], 'gnomon_label_overflows_total{label="tenant"} 2');
});

test("tokens that engines counted are counted by model, of which some were cached, and unknown ones not at all", async () => {
  const made = new MetricsUnderTest();
  made.join("a");
  made.metrics.finished(summary());
  made.metrics.finished(summary({ cachedTokens: undefined }));
  made.metrics.finished(summary({ promptTokens: undefined, cachedTokens: undefined, outputTokens: undefined }));
  for (const [family, expected] of [
    ["prompt", 2000],
    ["cached", 600],
    ["output", 100],
  ] as const) {
    const lines = await made.lines(`gnomon_${family}_tokens_total`);
    assert.deepEqual(
      lines.map((line) => Number(line.split(" ").at(-1))).filter((count) => count > 0),
      [expected],
      family,
    );
  }
});

test("where an endpoint serves any model, a name counts once a request for it went well", async () => {
  const made = new MetricsUnderTest();
  made.join("a", []);
  made.metrics.finished(summary({ model: "x", outcome: "failed" }));
  made.metrics.finished(summary({ model: "x" }));
  made.metrics.finished(summary({ model: "x", outcome: "failed" }));
  assert.deepEqual(await made.lines("gnomon_output_tokens_total"), [
    'gnomon_output_tokens_total{model="other"} 50',
    'gnomon_output_tokens_total{model="x"} 100',
  ]);
});

test("endpoints beyond the bound share a label, and one that is gone makes room and loses its series", async () => {
  const made = new MetricsUnderTest({ endpointsMax: 2 });
  for (let round = 0; round < 5; round++) {
    const id = `pod-${round}`;
    made.join(id);
    made.arrive(`${round}`);
    assert.deepEqual(await made.lines("gnomon_decisions_total"), [
      `gnomon_decisions_total{endpoint="${id}",reason="only"} 1`,
    ]);
    made.intake.accept({ kind: "endpoint-left", at: nowMicros(), endpoint: id });
    made.directory.remove(id);
  }
  made.join("one");
  made.join("two");
  for (let i = 0; i < 8; i++) made.arrive(`many-${i}`);
  const labels = (await made.lines("gnomon_decisions_total")).map((line) => /endpoint="([^"]*)"/.exec(line)![1]);
  assert.deepEqual(new Set(labels), new Set(["one", "other"]));
  assert.equal((await made.lines("gnomon_endpoint_effective_load")).length, 2);
  made.join("three");
  assert.equal((await made.lines("gnomon_endpoint_effective_load")).length, 2);
  assert.deepEqual(await made.lines("gnomon_endpoints_unlisted"), ["gnomon_endpoints_unlisted 1"]);
});

test("scrapes, the gateway's counters and the recorder are shown, and no key is", async () => {
  const errors = { connect: 2, timeout: 0, cut: 0, status: 0, "too-large": 0, garbage: 0, "no-files": 0, stopped: 0 };
  const status = {
    recorded: 5,
    dropped: 7,
    bufferedBytes: 1,
    segments: 1,
    writtenBytes: 9,
    removedSegments: 5,
    removedBytes: 6,
    encodeMicros: 500_000,
  };
  const made = new MetricsUnderTest({ recorder: () => status });
  made.join("a");
  const counts = { scrapes: 9, errors, skipped: 1, malformedLines: 0 };
  made.scrapes.push({ url: "http://e", counts, ageMicros: 250_000, lastError: "x" });
  made.counters.refused["too-large"] = 4;
  made.counters.clientAborts = 3;
  made.metrics.retried("cut");
  assert.deepEqual(await made.lines("gnomon_scrape_errors_total"), [
    'gnomon_scrape_errors_total{url="http://e",fault="connect"} 2',
  ]);
  assert.deepEqual(await made.lines("gnomon_scrape_age_seconds"), ['gnomon_scrape_age_seconds{url="http://e"} 0.25']);
  assert.deepEqual(await made.lines("gnomon_refusals_total"), ['gnomon_refusals_total{reason="too-large"} 4']);
  assert.deepEqual(await made.lines("gnomon_client_aborts_total"), ["gnomon_client_aborts_total 3"]);
  assert.deepEqual(await made.lines("gnomon_retries_total"), ['gnomon_retries_total{fault="cut"} 1']);
  assert.deepEqual(await made.lines("gnomon_recorder_dropped_total"), ["gnomon_recorder_dropped_total 7"]);
  assert.ok(!(await made.metrics.render()).includes("sk-x"));
});

test("the page is well-formed: each family once, with a type, and every sample readable", async () => {
  const made = new MetricsUnderTest({ processMetrics: true });
  made.join('quote"back\\slash\nline');
  made.arrive("one");
  made.metrics.finished(summary());
  const page = await made.metrics.render();
  const typed = page.split("\n").flatMap((line) => (line.startsWith("# TYPE ") ? [line.split(" ")[2]!] : []));
  assert.deepEqual(typed, [...new Set(typed)]);
  assert.ok(typed.every((name) => name.startsWith("gnomon_")));
  const samples = page.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const names = new Set(samples.map((line) => /^[^{ ]+/.exec(line)![0]));
  let read = 0;
  let endpoint = "";
  const visit: SampleVisitor = (name, labels) => {
    read++;
    if (name === "gnomon_decisions_total") endpoint = labels.get("endpoint")!;
    const family = name.replace(/_(bucket|sum|count)$/, "");
    assert.ok(typed.includes(name) || typed.includes(family), name);
  };
  assert.equal(atOnce(readExposition(page, names, visit)), 0);
  assert.equal(read, samples.length);
  assert.equal(endpoint, 'quote"back\\slash\nline');
});

test("a model that is named as the label for unknown ones has series of its own", async () => {
  const made = new MetricsUnderTest();
  made.join("a", ["other", "_other"]);
  for (const model of ["other", "_other", "nobody-serves-this"]) made.metrics.finished(summary({ model }));
  const lines = await made.lines("gnomon_requests_total");
  assert.deepEqual(
    new Set(lines.map((line) => /model="([^"]*)"/.exec(line)?.[1])),
    new Set(["__other", "_other", "other"]),
  );
});

test("no gauge is named as a counter", async () => {
  const page = await new MetricsUnderTest({ processMetrics: true }).metrics.render();
  assert.doesNotMatch(page, /^# TYPE \S+_total gauge$/m);
  assert.match(page, /^gnomon_nodejs_active_handles\{/m);
});

test("times have the buckets of the vLLM that was captured, so that the two can be laid over each other", async () => {
  const captured = readFileSync(join(import.meta.dirname, "../../golden/vllm-http/metrics_after_traffic.http"), "utf8");
  const made = new MetricsUnderTest();
  made.join("a");
  made.metrics.finished(summary());
  const page = await made.metrics.render();
  const bounds = (text: string, name: string): string[] =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}_bucket{`))
      .map((line) => String(Number(/le="([^"]+)"/.exec(line)![1]!.replace("+Inf", "Infinity"))));
  for (const [ours, theirs] of [
    ["gnomon_time_to_first_token_seconds", "vllm:time_to_first_token_seconds"],
    ["gnomon_time_per_output_token_seconds", "vllm:request_time_per_output_token_seconds"],
    ["gnomon_e2e_request_latency_seconds", "vllm:e2e_request_latency_seconds"],
  ] as const) {
    const expected = bounds(captured, theirs);
    assert.ok(expected.length > 10, theirs);
    assert.deepEqual(bounds(page, ours), expected, ours);
  }
});
