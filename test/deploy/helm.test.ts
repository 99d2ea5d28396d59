import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { loadConfig } from "#config/load.ts";
import { charted, HELM, VALUES } from "./helm-chart.ts";

const CHART = resolve(import.meta.dirname, "../../deploy/helm");
const text = (name: string): string => readFileSync(join(CHART, name), "utf8");
const skip = HELM === "" ? "TEST_HELM names no helm" : false;

const SECRETS = { ADMIN_TOKEN: "a".repeat(32), HASH_KEY: "b".repeat(32), CLIENT_KEYS: "c=d" };

interface Given {
  readonly mode?: string;
  readonly redis?: { readonly enabled?: boolean };
  readonly tls?: object;
}

interface Schema {
  readonly additionalProperties?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
}

/** Paths of what can be set: maps of free names, and lists, are one each. */
function paths(value: unknown, schema: Schema | undefined, at = ""): string[] {
  if (typeof value !== "object" || value === null || schema?.properties === undefined) return [at];
  return Object.entries(value).flatMap(([key, one]) => paths(one, schema.properties?.[key], `${at}.${key}`));
}

test("the chart is of this version, and its schema knows every value and no other", () => {
  const { version } = JSON.parse(readFileSync(join(CHART, "../../package.json"), "utf8")) as { version: string };
  const chart = parse(text("Chart.yaml")) as { version: string; appVersion: string };
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
  const compare = (value: unknown, schema: Schema, at: string): void => {
    if (schema.properties === undefined) return;
    assert.equal(schema.additionalProperties, false, at);
    const known = Object.keys(schema.properties).filter((key) => key !== "global");
    assert.deepEqual(Object.keys(value as object).sort(), known.sort(), at);
    for (const key of known) compare((value as Record<string, unknown>)[key], schema.properties[key]!, `${at}.${key}`);
  };
  compare(parse(text("values.yaml")), JSON.parse(text("values.schema.json")) as Schema, "values");
});

test("templates read every value, and none that there is not", () => {
  const values = parse(text("values.yaml")) as object;
  const settable = paths(values, JSON.parse(text("values.schema.json")) as Schema).map((path) => path.slice(1));
  const templates = globSync("templates/*", { cwd: CHART }).map(text).join("\n");
  const read = new Set([...templates.matchAll(/\.Values\.([A-Za-z.]+)/g)].map(([, path]) => path!));
  for (const path of read)
    assert.ok(
      settable.some((one) => one === path || path.startsWith(`${one}.`)),
      `.Values.${path} is no value`,
    );
  for (const path of settable) assert.ok(read.has(path), `${path} has no effect`);
});

test("with every set of values the configuration is one that the gateway takes, for what was asked", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-chart-test-"));
  try {
    for (const [name, values] of VALUES) {
      const manifests = charted(CHART, values);
      const map = manifests.find(({ kind }) => kind === "ConfigMap") as unknown as { data: { "config.yaml": string } };
      const file = join(folder, `${name}.yaml`);
      writeFileSync(file, map.data["config.yaml"]);
      const config = loadConfig({ file, environment: SECRETS, overrides: [] });
      const { mode = "gateway", redis = {}, tls } = values as Given;
      assert.equal(config.picker.port, mode === "picker" ? 9002 : undefined, name);
      assert.equal(config.share.url === undefined, redis.enabled === false, name);
      assert.equal(config.listen.tls.certFile !== undefined, tls !== undefined && mode === "gateway", name);
      const kinds = manifests.map(({ kind }) => kind);
      assert.equal(kinds.filter((kind) => kind === "Deployment").length, config.share.url?.includes("gnomon") ? 2 : 1);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test("a value that does not exist or cannot be is refused by its name", { skip }, () => {
  for (const [set, named] of [
    ["mode=both", /mode/],
    ["engines.sevice=x", /sevice/],
    ["tokens.clientKeys=true", /tokens\.clientKeys: expected tokens\.secretName/],
  ] as const) {
    assert.throws(
      () => execFileSync(HELM, ["template", "g", CHART, "--set", set], { encoding: "utf8", stdio: "pipe" }),
      ({ stderr }: { stderr: string }) => named.test(stderr),
    );
  }
});
