import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { parse } from "yaml";
import { loadConfig } from "#config/load.ts";
import { loadProfile } from "#config/profile-file.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import { block, MIGRATE_PAGE, oursFile, SOURCES } from "./migrate-page.ts";

/** Ours as the gateway reads it, with the profile that it would route by. */
function loaded(
  t: TestContext,
  name: string,
): { readonly config: Config; readonly profile: string; readonly scorers: object } {
  const config = loadConfig({ file: oursFile(t, name), environment: {}, overrides: [], withoutSecrets: true });
  const { profile } = resolveProfiles(config, { environment: {}, readsFiles: true });
  return { config, profile: profile.name, scorers: profile };
}

/** host:port of every engine that a text names, in order. */
const engines = (text: string): string[] => [...text.matchAll(/10\.0\.0\.\d+:\d+/g)].map(([address]) => address);
const option = (text: string, name: string): string => new RegExp(`--${name} (\\S+)`).exec(text)![1]!;

for (const name of SOURCES) {
  test(`${name}: ours is a configuration that the gateway takes, for the same engines`, (t) => {
    const { config } = loaded(t, name);
    assert.deepEqual(
      config.endpoints.map(({ url }) => new URL(url).host),
      engines(block("theirs", name)),
    );
  });
}

test("llm-d: its own file decides, by the weights that it states", (t) => {
  const theirs = parse(block("theirs", "llm-d")) as {
    schedulingProfiles: { plugins: { pluginRef: string; weight?: number }[] }[];
  };
  const weights = theirs.schedulingProfiles[0]!.plugins.flatMap(({ weight }) => weight ?? []);
  const { scorers } = loaded(t, "llm-d");
  const found = [...JSON.stringify(scorers).matchAll(/"weight":(\d+)/g)].map(([, weight]) => Number(weight));
  assert.deepEqual(found.join(), weights.join());
});

test("production-stack: its session key, port and interval are ours", (t) => {
  const theirs = block("theirs", "production-stack");
  const { config, profile } = loaded(t, "production-stack");
  assert.equal(profile, `production-stack-${option(theirs, "routing-logic")}`);
  assert.deepEqual(config.clients.sessionHeaders, [option(theirs, "session-key")]);
  assert.equal(config.listen.port, Number(option(theirs, "port")));
  assert.equal(config.scrape.intervalMillis, 1000 * Number(option(theirs, "engine-stats-interval")));
});

test("SMG: its thresholds, limits, retries and breaker are ours", (t) => {
  const theirs = block("theirs", "SMG");
  const number = (name: string) => Number(option(theirs, name));
  const { config, scorers } = loaded(t, "SMG");
  const text = JSON.stringify(scorers);
  assert.ok(
    text.includes(`"absolute":${number("balance-abs-threshold")},"relative":${number("balance-rel-threshold")}`),
  );
  assert.ok(text.includes(`"above":${number("cache-threshold")}`));
  assert.equal(config.limits.requestsInFlightMax, number("max-concurrent-requests"));
  assert.equal(config.limits.attemptsMax, number("retry-max-retries") + 1);
  assert.equal(config.routing.breaker.failuresMax, number("cb-failure-threshold"));
});

test("LiteLLM: strategy, retries, time limit, cooldown and key are ours", (t) => {
  const theirs = parse(block("theirs", "LiteLLM")) as {
    router_settings: { routing_strategy: string; num_retries: number; timeout: number; allowed_fails: number };
    general_settings: { master_key: string };
  };
  const { num_retries: retries, timeout, allowed_fails: fails } = theirs.router_settings;
  const { config, profile } = loaded(t, "LiteLLM");
  assert.deepEqual([theirs.router_settings.routing_strategy, profile], ["least-busy", "least-loaded"]);
  assert.deepEqual([config.limits.attemptsMax, config.limits.totalMillisMax], [retries + 1, timeout * 1000]);
  assert.equal(config.routing.breaker.failuresMax, fails);
  assert.equal(`os.environ/${config.clients.keysEnv}`, theirs.general_settings.master_key);
});

test("nginx: method, port, tries, body size and time limit are ours", (t) => {
  const theirs = block("theirs", "nginx");
  const number = (pattern: RegExp) => Number(pattern.exec(theirs)![1]);
  const { config, profile } = loaded(t, "nginx");
  assert.deepEqual([theirs.includes("least_conn;"), profile], [true, "least-loaded"]);
  assert.equal(config.listen.port, number(/listen (\d+);/));
  assert.equal(config.limits.attemptsMax, number(/_tries (\d+)/));
  assert.equal(config.limits.bodyBytesMax, 1_048_576 * number(/body_size (\d+)m/));
  assert.equal(config.limits.idleMillisMax, 1000 * number(/read_timeout (\d+)s/));
  assert.equal(config.routing.breaker.failuresMax, number(/max_fails=(\d+)/));
});

test("every profile that the page names is there", () => {
  const named = [...MIGRATE_PAGE.matchAll(/`([a-z][a-z0-9-]+)`/g)].map(([, name]) => name!);
  const known = named.filter((name) => /^(?:gnomon|smg|production-stack|llm-d)-\w/.test(name));
  for (const name of ["round-robin", "consistent-hash", "power-of-two", "least-loaded", "random", "gnomon", ...known]) {
    assert.equal(loadProfile(name).name, name);
  }
});
