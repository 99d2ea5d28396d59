import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Emulator } from "#emulator/server.ts";
import { promFloat } from "#emulator/metrics/exposition.ts";
import { readCapture, startAs } from "./captures.ts";
import { parseResponse } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";

/** Families of --kv-cache-metrics, which the emulator does not have. */
const SAMPLED = /^vllm:kv_block_(lifetime|idle_before_evict|reuse_gap)_seconds/;

describe("the metrics page", () => {
  let emulator: Emulator;
  before(async () => {
    emulator = await startAs("18109");
  });
  after(() => emulator.close());

  test("of a server without traffic has the captured lines, but for their values", async () => {
    const page = await scrape(emulator);
    assert.deepEqual(lines(page), lines(captured("metrics_cold_default.http")));
  });

  test("of a server with traffic has the captured families, and the captured lines under vllm:", async () => {
    for (const path of ["/v1/completions", "/v1/nothing"]) {
      const body = { prompt: "one two three", max_tokens: 5, ignore_eos: true, n: 2 };
      await sendRaw(emulator.port, requestBytes("POST", path, body), isWhole);
    }
    const page = await scrape(emulator);
    for (const name of ["metrics_after_traffic.http", "metrics_waiting.http"]) {
      const real = captured(name);
      assert.deepEqual(families(page), families(real));
      const own = (list: readonly string[]) => list.filter((line) => line.startsWith("vllm:"));
      assert.deepEqual(own(lines(page)), own(lines(real)));
      assert.deepEqual(httpLabels(page), httpLabels(real));
    }
  });

  test("of a server with adapters lists them", async () => {
    const other = await startAs("18107");
    try {
      const body = { model: "adapter-a", prompt: "one two three", max_tokens: 5 };
      await sendRaw(other.port, requestBytes("POST", "/v1/completions", body), isWhole);
      const page = await scrape(other);
      assert.deepEqual(families(page), families(captured("metrics_lora_running.http")));
      assert.match(
        page,
        /vllm:lora_requests_info\{max_lora="1",running_lora_adapters="",waiting_lora_adapters=""\} 1\./,
      );
    } finally {
      await other.close();
    }
  });

  test("counts what was sent", async () => {
    const fresh = await startAs("18109");
    try {
      const prompt = "x".repeat(4 * 100);
      const body = { prompt, max_tokens: 7, ignore_eos: true };
      for (let i = 0; i < 3; i++) await sendRaw(fresh.port, requestBytes("POST", "/v1/completions", body), isWhole);
      const page = await scrape(fresh);
      // Blocks of 32 tokens: 96 of 100 are found by the second and the third request.
      assert.equal(value(page, "vllm:prefix_cache_queries_total"), 300);
      assert.equal(value(page, "vllm:prefix_cache_hits_total"), 192);
      assert.equal(value(page, "vllm:prompt_tokens_total"), 300);
      assert.equal(value(page, "vllm:prompt_tokens_cached_total"), 192);
      assert.equal(value(page, "vllm:generation_tokens_total"), 21);
      assert.equal(value(page, 'vllm:request_success_total{engine="0",finished_reason="length"'), 3);
      assert.equal(value(page, "vllm:iteration_tokens_total_sum"), 300 - 192 + 21);
      assert.equal(value(page, "vllm:request_generation_tokens_sum"), 21);
      assert.equal(value(page, "vllm:time_to_first_token_seconds_count"), 3);
      assert.equal(value(page, "vllm:inter_token_latency_seconds_count"), 18);
      assert.equal(value(page, "vllm:num_requests_running"), 0);
      assert.equal(value(page, "vllm:kv_cache_usage_perc"), 0);
    } finally {
      await fresh.close();
    }
  });
});

test("floats are printed as Python's client prints them", () => {
  const printed = [0, 1, 0.5, 0.005, 123456, 1234567, 5.239296e9, 1.79522213284e9, 1795222199.0047872, 1e-7];
  assert.deepEqual(printed.map(promFloat), [
    "0.0",
    "1.0",
    "0.5",
    "0.005",
    "123456.0",
    "1.234567e+06",
    "5.239296e+09",
    "1.79522213284e+09",
    "1.7952221990047872e+09",
    "1e-07",
  ]);
  assert.equal(promFloat(Number.POSITIVE_INFINITY), "+Inf");
});

async function scrape(emulator: Emulator): Promise<string> {
  const answer = parseResponse(await sendRaw(emulator.port, requestBytes("GET", "/metrics"), isWhole));
  assert.equal(answer.status, 200);
  return answer.chunks[0] ?? "";
}

function captured(file: string): string {
  return parseResponse(readCapture(file)).chunks[0] ?? "";
}

/** Lines without their values; the labels of the cache configuration without theirs too. */
function lines(page: string): readonly string[] {
  return page
    .split("\n")
    .filter((line) => !SAMPLED.test(line.replace(/^# \w+ /, "")))
    .map((line) => (line.startsWith("#") ? line : line.slice(0, line.lastIndexOf(" "))))
    .map((line) => (line.startsWith("vllm:cache_config_info") ? line.replace(/="[^"]*"/g, "") : line));
}

function families(page: string): readonly string[] {
  return lines(page).filter((line) => line.startsWith("#"));
}

/** Names of the HTTP families' samples with the names of their labels. */
function httpLabels(page: string): readonly string[] {
  const samples = lines(page).filter((line) => line.startsWith("http_"));
  return [...new Set(samples.map((line) => line.replace(/="[^"]*"/g, "")))];
}

function value(page: string, prefix: string): number {
  const line = page.split("\n").find((one) => one.startsWith(prefix));
  assert.ok(line !== undefined, prefix);
  return Number(line.slice(line.lastIndexOf(" ") + 1));
}
