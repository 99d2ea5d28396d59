import assert from "node:assert/strict";
import { test } from "node:test";
import { type Load, REPORTED_MAX } from "#core/endpoint/endpoint.ts";
import { readEnginePage } from "#live/scrape/scrape-map.ts";
import {
  capacityTokensOf,
  dataParallelOf,
  loadOf,
  type SignalReading,
  readingOf,
  restarted,
  sleepOf,
} from "#live/scrape/scrape-map-load.ts";
import { CAPTURED_PAGES, capturedPage, writtenPage } from "./captured-page.ts";

const SECOND = 1_000_000;

function reading(text: string, rank?: number, at = 0): SignalReading {
  const found = readingOf(at, readEnginePage(text), rank);
  assert.ok(found !== undefined, "the page speaks of that rank");
  return found;
}

function load(text: string, rank?: number): Load {
  return loadOf(reading(text, rank), undefined);
}

test("every captured page is read without a malformed line, and its gauges lie in their ranges", () => {
  for (const name of CAPTURED_PAGES) {
    const page = readEnginePage(capturedPage(name));
    assert.equal(page.malformed, 0, name);
    const { running, waiting, kvUtilization, prefixHitRatio } = loadOf(readingOf(0, page, undefined)!, undefined);
    assert.ok(running !== undefined && waiting !== undefined && Number.isInteger(running + waiting), name);
    assert.ok(kvUtilization !== undefined && kvUtilization >= 0 && kvUtilization <= 1, name);
    assert.ok(prefixHitRatio === undefined || (prefixHitRatio >= 0 && prefixHitRatio <= 1), name);
  }
});

test("a queue that the engine showed is the load", () => {
  const { running, waiting, kvUtilization } = load(capturedPage("metrics_waiting"));
  assert.deepEqual([running, waiting], [16, 24]);
  assert.equal(kvUtilization, 0.10161211529066927);
});

test("the cached share comes from the tokens by source: 96 of 1,140 on rank 1, none on rank 0", () => {
  const page = capturedPage("metrics_dp2_running");
  assert.equal(load(page, 1).prefixHitRatio, 96 / 1140);
  assert.equal(load(page, 0).prefixHitRatio, 0);
  assert.equal(load(page).prefixHitRatio, 96 / 2380);
});

test("an engine that was asked nothing has no hit ratio, not one of zero", () => {
  assert.equal(load(capturedPage("metrics_cold")).prefixHitRatio, undefined);
});

test("ranks are summed without a rank and kept apart with one", () => {
  const page = capturedPage("metrics_dp2_running");
  assert.deepEqual([load(page, 0).running, load(page, 1).running, load(page).running], [5, 4, 9]);
  const whole = load(page).kvUtilization!;
  assert.equal(whole, (load(page, 0).kvUtilization! + load(page, 1).kvUtilization!) / 2);
  assert.equal(readingOf(0, readEnginePage(page), 2), undefined);
});

test("a rank behind its own address is found whatever its label", () => {
  assert.equal(load(capturedPage("metrics_waiting"), 3).running, 16);
});

test("capacity leaves the null block out, and the ranks' blocks that one page sums are shared among them", () => {
  assert.equal(capacityTokensOf(reading(capturedPage("metrics_cold"))), (49 - 1) * 32);
  assert.equal(capacityTokensOf(reading(capturedPage("metrics_dp2_running"), 0)), (2048 - 1) * 32);
  assert.equal(capacityTokensOf(reading(capturedPage("metrics_dp2_running"))), 2 * (2048 - 1) * 32);
  const withoutTokens = capturedPage("metrics_dp2_running").replaceAll(/kv_cache_size_tokens="\d+",/g, "");
  assert.equal(capacityTokensOf(reading(withoutTokens, 0)), (2048 - 1) * 32);
  assert.equal(capacityTokensOf(reading(withoutTokens)), 2 * (2048 - 1) * 32);
});

test("an endpoint that balances its ranks itself stands for all that its page shows, one of them for itself", () => {
  const page = capturedPage("metrics_dp2_running");
  assert.equal(dataParallelOf(reading(page)), 2);
  assert.equal(dataParallelOf(reading(page, 1)), 1);
  assert.equal(dataParallelOf(reading(capturedPage("metrics_waiting"))), 1);
});

test("of the adapters' series the newest holds, whatever their order", () => {
  const page = capturedPage("metrics_lora_running");
  const expected = { adaptersRunning: ["adapter-a"], adaptersWaiting: ["adapter-a"], adaptersMax: 1 };
  const backwards = page.split("\n").toReversed().join("\n");
  for (const text of [page, backwards]) {
    const { adaptersRunning, adaptersWaiting, adaptersMax } = load(text);
    assert.deepEqual({ adaptersRunning, adaptersWaiting, adaptersMax }, expected);
  }
  assert.deepEqual(load(capturedPage("metrics_lora_idle")).adaptersRunning, []);
  assert.equal(load(capturedPage("metrics_waiting")).adaptersRunning, undefined);
});

test("old spellings of vLLM mean the same, and the newer of two wins in either order", () => {
  const page = writtenPage("vllm-old");
  for (const text of [page, page.split("\n").toReversed().join("\n")]) {
    const { running, waiting, kvUtilization, prefixHitRatio } = load(text);
    assert.deepEqual([running, waiting, kvUtilization, prefixHitRatio], [3, 7, 0.5, 0.25]);
    assert.equal(capacityTokensOf(reading(text)), 1000 * 16);
  }
  const withoutNewer = page.replaceAll("vllm:kv_cache_usage_perc", "vllm:other");
  assert.equal(load(withoutNewer).kvUtilization, 0.25);
});

test("SGLang: tensor-parallel ranks repeat a figure, data-parallel ranks add to it", () => {
  const page = writtenPage("sglang-dp2");
  const { running, waiting, kvUtilization, prefixHitRatio } = load(page);
  assert.deepEqual([running, waiting, kvUtilization, prefixHitRatio], [7, 4, 0.5, 0.25]);
  assert.equal(capacityTokensOf(reading(page)), 190_000);
  const rank = load(page, 1);
  assert.deepEqual([rank.running, rank.waiting, rank.kvUtilization, rank.prefixHitRatio], [2, 0, 0.25, 0.1]);
  assert.equal(capacityTokensOf(reading(page, 0)), 100_000);
  const labelled = 'sglang:num_running_reqs 1\nsglang:cache_config_info{num_pages="10",page_size="64"} 1.0\n';
  assert.equal(capacityTokensOf(reading(labelled)), 640);
  assert.equal(capacityTokensOf(reading("sglang:num_running_reqs 1\nsglang:page_size 64\nsglang:num_pages 10")), 640);
});

test("means and rates are those of the interval", () => {
  const before = reading(capturedPage("metrics_dp2"), undefined, 5 * SECOND);
  const now = reading(edited({ ttft: [2, 0.5], itl: [10, 0.2], prompt: 300, generation: 100 }), undefined, 7 * SECOND);
  const { ttftMicros, tpotMicros, tokensPerSecond } = loadOf(now, before);
  assert.deepEqual([ttftMicros, tpotMicros], [250_000, 20_000]);
  assert.equal(tokensPerSecond, 200);
  assert.equal(restarted(now, before), false);
});

test("an interval in which nothing happened has a rate of zero and no latency", () => {
  const before = reading(capturedPage("metrics_after_traffic"), undefined, 0);
  const now = reading(capturedPage("metrics_after_traffic"), undefined, SECOND);
  const { ttftMicros, tpotMicros, tokensPerSecond } = loadOf(now, before);
  assert.deepEqual([ttftMicros, tpotMicros, tokensPerSecond], [undefined, undefined, 0]);
});

test("an endless sum gives no mean and no rate, which would be no score and in no trace", () => {
  const page = (count: number, sum: string) =>
    ["num_requests_running 1", `time_to_first_token_seconds_sum ${sum}`, `time_to_first_token_seconds_count ${count}`]
      .concat(`inter_token_latency_seconds_sum ${sum}`, `inter_token_latency_seconds_count ${count}`)
      .concat(`prompt_tokens_total ${sum}`)
      .map((line) => `vllm:${line}\n`)
      .join("");
  const { ttftMicros, tpotMicros, tokensPerSecond } = loadOf(
    reading(page(2, "+Inf"), undefined, SECOND),
    reading(page(1, "1")),
  );
  assert.deepEqual([ttftMicros, tpotMicros, tokensPerSecond], [undefined, undefined, undefined]);
});

test("a figure that no engine can have is unknown", () => {
  const page = (figure: string) => {
    const { running, waiting } = load(`vllm:num_requests_running ${figure}\nvllm:num_requests_waiting ${figure}\n`);
    return [running, waiting];
  };
  assert.deepEqual(page("1e12"), [REPORTED_MAX, REPORTED_MAX]);
  for (const figure of ["1.1e12", "1e308", "+Inf", "-1"]) assert.deepEqual(page(figure), [undefined, undefined]);
});

test("a counter that went back, or another process, is a restart; no negative rate comes of it", () => {
  const before = reading(capturedPage("metrics_after_traffic"), undefined, 0);
  const now = reading(capturedPage("metrics_cold_default"), undefined, SECOND);
  assert.equal(restarted(now, before), true);
  const { ttftMicros, tokensPerSecond } = loadOf(now, before);
  assert.deepEqual([ttftMicros, tokensPerSecond], [undefined, undefined]);
  const idle = capturedPage("metrics_cold_default");
  const replaced = idle.replace(/^process_start_time_seconds .*$/m, "process_start_time_seconds 1.5e+09");
  assert.notEqual(replaced, idle);
  assert.equal(restarted(reading(replaced), reading(idle)), true);
  assert.equal(restarted(reading(idle), reading(idle)), false);
});

test("a page that is not an engine's gives no reading", () => {
  assert.equal(readingOf(0, readEnginePage("up 1\nhttp_requests_total 3\n"), undefined), undefined);
  assert.equal(readingOf(0, readEnginePage(""), undefined), undefined);
  assert.equal(readingOf(0, readEnginePage("vllm:prompt_tokens_total 3\n"), undefined), undefined);
});

/** The page of two ranks after more work on rank 0. */
function edited(more: { ttft: [number, number]; itl: [number, number]; prompt: number; generation: number }): string {
  const add = (page: string, name: string, amount: number) => {
    const line = new RegExp(`^(${name}\\{engine="0",model_name="tiny"\\}) (\\S+)$`, "m");
    assert.match(page, line);
    return page.replace(line, (_, series: string, value: string) => `${series} ${Number(value) + amount}`);
  };
  let page = capturedPage("metrics_dp2");
  page = add(page, "vllm:time_to_first_token_seconds_count", more.ttft[0]);
  page = add(page, "vllm:time_to_first_token_seconds_sum", more.ttft[1]);
  page = add(page, "vllm:inter_token_latency_seconds_count", more.itl[0]);
  page = add(page, "vllm:inter_token_latency_seconds_sum", more.itl[1]);
  page = add(page, "vllm:prompt_tokens_total", more.prompt);
  return add(page, "vllm:generation_tokens_total", more.generation);
}

test("an engine sleeps where its page shows it as not awake, at any level; one rank that does is enough", () => {
  for (const name of CAPTURED_PAGES) {
    const page = readEnginePage(capturedPage(name));
    assert.equal(sleepOf(readingOf(0, page, undefined)!), "awake", name);
  }
  const cold = capturedPage("metrics_cold_default");
  const become = (page: string, state: string, value: string): string =>
    page.replace(new RegExp(`(sleep_state="${state}"\\}) .*`), `$1 ${value}`);
  const paused = become(cold, "awake", "0.0");
  assert.equal(sleepOf(reading(paused)), "paused");
  assert.equal(sleepOf(reading(become(paused, "weights_offloaded", "1.0"))), "emptied");
  assert.equal(sleepOf(reading(become(paused, "discard_all", "1.0"))), "emptied");
  const ranks = become(capturedPage("metrics_dp2"), "awake", "0.0");
  assert.equal(sleepOf(reading(ranks)), "paused");
  assert.deepEqual(new Set([0, 1].map((rank) => sleepOf(reading(ranks, rank)))), new Set(["awake", "paused"]));
  assert.equal(sleepOf(reading(cold.replace(/^vllm:engine_sleep_state.*$/gm, ""))), undefined);
});

test("of more ranks than a server has, and of more adapters than an engine runs, the first ones are read", () => {
  const ranks = Array.from({ length: 3_000 }, (_, i) => `vllm:num_requests_running{engine="${i}"} 1`);
  const page = readEnginePage(ranks.join("\n"));
  assert.equal(page.ranks.size, 1_024);
  assert.equal(page.malformed, 3_000 - 1_024);
  const names = Array.from({ length: 3_000 }, (_, i) => `a${i}`).join();
  const adapters = readEnginePage(`vllm:lora_requests_info{running_lora_adapters="${names}",max_lora="4"} 1`).adapters;
  assert.equal(adapters?.running.length, 1_024);
});
