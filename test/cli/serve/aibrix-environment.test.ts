import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import { AIBRIX_PARAMETERS } from "#config/aibrix-environment.ts";
import { ConfigError } from "#config/config-error.ts";
import { configCommand } from "#cli/config.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { type Said, inProcess } from "../in-process.ts";

const plan = (environment: Record<string, string>, given: Record<string, unknown> = {}) =>
  servePlan(given, environment);

test("AIBrix's variables choose the strategy, the tokenizer and the index as AIBrix documents them", () => {
  const { config, profile } = plan({
    AIBRIX_ROUTING_ALGORITHM: "prefix-cache",
    AIBRIX_PREFIX_CACHE_TOKENIZER_TYPE: "tiktoken",
    AIBRIX_PREFIX_CACHE_BLOCK_SIZE: "32",
    AIBRIX_PREFIX_CACHE_BLOCK_NUMBER: "1000",
    AIBRIX_PREFIX_CACHE_POD_RUNNING_REQUEST_IMBALANCE_ABS_COUNT: "8",
    AIBRIX_PREFIX_CACHE_STANDARD_DEVIATION_FACTOR: "1",
  });
  assert.equal(profile.name, "aibrix-prefix-cache");
  assert.equal(config.tokenizer.kind, "tiktoken");
  assert.equal(config.prefix.blockTokens, 32);
  assert.equal(config.prefix.capacityTokens, 32_000);
  assert.deepEqual(
    profile.spec.filters.map(({ parameters }) => parameters),
    [{ absolute: 8, onImbalance: "least-request" }, { deviationFactor: 1 }],
  );
});

async function config(t: TestContext, environment: Readonly<Record<string, string>>): Promise<Said> {
  const before = process.env;
  process.env = { ...before, ...environment };
  const result = await inProcess(t, [configCommand()], ["config"]);
  process.env = before;
  return result;
}

test("gnomon config prints the configuration that serve would run with, and refuses what it would refuse", async (t) => {
  const parameters = Object.keys(AIBRIX_PARAMETERS).map((name) => [name, name.endsWith("UNIT") ? "minutes" : "2"]);
  const environments: readonly Record<string, string>[] = [
    {},
    { AIBRIX_ROUTING_ALGORITHM: "least-request" },
    { AIBRIX_PREFIX_CACHE_TOKENIZER_TYPE: "tiktoken", AIBRIX_PREFIX_CACHE_BLOCK_SIZE: "32", GNOMON_LISTEN_PORT: "7" },
    { AIBRIX_PREFIX_CACHE_BLOCK_NUMBER: "900", ...(Object.fromEntries(parameters) as Record<string, string>) },
  ];
  for (const environment of environments) {
    const printed = await config(t, environment);
    assert.deepEqual(parse(printed.out), JSON.parse(JSON.stringify(plan(environment).config)));
    const given = Object.keys(environment).filter((name) => Object.hasOwn(AIBRIX_PARAMETERS, name));
    const named = [...printed.out.matchAll(/^# (AIBRIX_\w+): /gm)].map(([, name]) => name);
    assert.deepEqual(new Set(named), new Set(given));
    for (const name of Object.keys(environment)) {
      const wrong = { ...environment, [name]: "-" };
      assert.throws(() => plan(wrong), ConfigError);
      assert.equal((await config(t, wrong)).code, 2, name);
    }
  }
});

test("a block of the character tokenizer is so many characters, and that tokenizer is AIBrix's default", () => {
  const { config, profile } = plan({
    AIBRIX_ROUTING_ALGORITHM: "prefix-aware",
    AIBRIX_PREFIX_CACHE_BLOCK_SIZE: "32",
    AIBRIX_PREFIX_CACHE_BLOCK_NUMBER: "1000",
  });
  assert.equal(profile.name, "aibrix-prefix-cache");
  assert.equal(config.tokenizer.kind, "character");
  assert.equal(config.tokenizer.blockCharacters, 32);
  assert.equal(config.prefix.blockTokens, "engine");
  assert.equal(config.prefix.capacityTokens, 16_000);
  assert.equal(plan({ AIBRIX_ROUTING_ALGORITHM: "least-request" }).config.tokenizer.kind, "character");
  assert.equal(plan({}).config.tokenizer.kind, "estimate");
  assert.equal(plan({ AIBRIX_ROUTER_VTC_TOKEN_TRACKER_WINDOW_SIZE: "3" }).config.tokenizer.kind, "estimate");
});

test("a tokenizer that the file or a flag states stands", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-aibrix-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  writeFileSync(file, "tokenizer: { kind: tiktoken }\n");
  const environment = { AIBRIX_ROUTING_ALGORITHM: "prefix-cache" };
  assert.equal(plan(environment, { config: file }).config.tokenizer.kind, "tiktoken");
  const typed = { ...environment, AIBRIX_PREFIX_CACHE_TOKENIZER_TYPE: "character" };
  assert.equal(plan(typed, { config: file }).config.tokenizer.kind, "character");
});

test("every documented VTC variable sets a parameter, and a flag still wins over the strategy", () => {
  const names = Object.keys(AIBRIX_PARAMETERS).filter((name) => name.includes("VTC"));
  assert.equal(names.length, 9);
  const environment = Object.fromEntries(names.map((name, i) => [name, String(i + 2)]));
  const { profile } = plan(
    { ...environment, AIBRIX_ROUTER_VTC_TOKEN_TRACKER_TIME_UNIT: "seconds", AIBRIX_ROUTING_ALGORITHM: "throughput" },
    { profile: "vtc-basic" },
  );
  assert.equal(profile.name, "vtc-basic");
  assert.deepEqual(profile.spec.scorers[0]?.parameters, {
    windowUnit: "seconds",
    windowSize: 3,
    minTokens: 4,
    maxTokens: 5,
    inputTokenWeight: 6,
    outputTokenWeight: 7,
    maxPodLoad: 8,
    fairnessWeight: 9,
    utilizationWeight: 10,
  });
});

test("a bad value is refused with the variable and what it accepts", () => {
  const cases: [string, string, RegExp][] = [
    ["AIBRIX_ROUTING_ALGORITHM", "prefix-cash", /^AIBRIX_ROUTING_ALGORITHM: expected one of .*prefix-cache/],
    ["AIBRIX_PREFIX_CACHE_TOKENIZER_TYPE", "remote", /expected character or tiktoken, got "remote"/],
    ["AIBRIX_PREFIX_CACHE_BLOCK_SIZE", "0", /expected a whole number above 0, got "0"/],
    ["AIBRIX_ROUTER_VTC_TOKEN_TRACKER_TIME_UNIT", "hours", /expected one of minutes, seconds, milliseconds/],
    ["AIBRIX_ROUTER_VTC_BASIC_MAX_POD_LOAD", "x", /expected a number of at least 1, got NaN/],
  ];
  for (const [name, value, expected] of cases) {
    assert.throws(
      () => plan({ [name]: value }, { profile: "vtc-basic" }),
      (error) =>
        error instanceof ConfigError && error.lines.some((line) => line.startsWith(name) && expected.test(line)),
      name,
    );
  }
});
