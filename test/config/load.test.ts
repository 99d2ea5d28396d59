import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { parse } from "yaml";
import * as z from "zod";
import { breakerOptions } from "#config/breaker-options.ts";
import { OWN_SIGNALS } from "#config/profile-signals.ts";
import { BREAKER_DEFAULTS } from "#core/endpoint/breaker.ts";
import { STAGE_SETTINGS } from "#core/stages.ts";
import { KEEPER_TIMES_DEFAULT } from "#live/keeper/keeper-times.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import { PICKER_RULES } from "#picker/picker-rules.ts";
import { ConfigError } from "#config/config-error.ts";
import { describeAsMarkdown, describeAsYaml, describeKeys } from "#config/describe.ts";
import { adminPortOf } from "#config/listen-section.ts";
import { type ConfigSources, loadConfig } from "#config/load.ts";
import { overrideFromText, overridesFromEnvironment } from "#config/override.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { type SchemaNode, schemaNode } from "#config/schema-node.ts";

const DEFAULTS = loadConfig({ file: undefined, environment: {}, overrides: [] });

function file(t: TestContext, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-config-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "gnomon.yaml");
  writeFileSync(path, text);
  return path;
}

/** The lines of the error that a configuration is refused with. */
function refused(sources: Partial<ConfigSources>): readonly string[] {
  try {
    loadConfig({ file: undefined, environment: {}, overrides: [], ...sources });
  } catch (error) {
    assert.ok(error instanceof ConfigError);
    return error.lines;
  }
  assert.fail("the configuration was accepted");
}

test("config/default.yaml is what the schema describes, and reads back as the defaults", () => {
  const path = join(import.meta.dirname, "../../config/default.yaml");
  assert.equal(readFileSync(path, "utf8"), describeAsYaml(), "write it anew with: npx gnomon config --default");
  assert.deepEqual(loadConfig({ file: path, environment: {}, overrides: [] }), DEFAULTS);
});

test("the schema as data is what zod writes of it, though its sections are written one by one", () => {
  const asZod = z.toJSONSchema(CONFIG_SCHEMA, { io: "input", unrepresentable: "any" });
  const withoutVersion = (node: unknown): unknown =>
    JSON.parse(JSON.stringify(node, (key, value: unknown) => (key === "$schema" ? undefined : value)));
  assert.deepEqual(withoutVersion(schemaNode(CONFIG_SCHEMA)), withoutVersion(asZod));
});

test("sections that nobody asks for are not written", () => {
  const { properties } = schemaNode(CONFIG_SCHEMA);
  for (const [key, property] of Object.entries(Object.getOwnPropertyDescriptors(properties!)))
    assert.equal("value" in property, false, key);
  const port: SchemaNode = { type: "integer" };
  const others = Object.fromEntries(Object.keys(properties!).map((key) => [key, {}]));
  const asked: string[] = [];
  const root: SchemaNode = {
    properties: new Proxy<Record<string, SchemaNode>>(
      { ...others, listen: { properties: { port } } },
      {
        get(sections, key) {
          asked.push(String(key));
          return Reflect.get(sections, key) as SchemaNode;
        },
      },
    ),
  };
  const environment = { GNOMON_LISTEN_PORT: "81", GNOMON_SERVICE_HOST: "10.0.0.1" };
  const { overrides, problems } = overridesFromEnvironment(environment, root, () => false);
  assert.deepEqual(overrides, [{ path: ["listen", "port"], value: 81, from: "GNOMON_LISTEN_PORT" }]);
  assert.deepEqual([problems, [...new Set(asked)]], [[], ["listen"]]);
});

test("the name of a secret has no default: those that are checked are the ones that were given", () => {
  const secrets: SchemaNode[] = [];
  const walk = (node: SchemaNode | boolean | undefined): void => {
    if (typeof node !== "object") return;
    if (node.secret === true) secrets.push(node);
    for (const below of [...Object.values(node.properties ?? {}), ...(node.anyOf ?? []), ...(node.oneOf ?? [])])
      walk(below);
    walk(node.items);
    walk(node.additionalProperties);
  };
  walk(schemaNode(CONFIG_SCHEMA));
  assert.ok(secrets.length >= 8);
  assert.deepEqual(new Set(secrets.map((node) => node.default)), new Set([undefined]));
  assert.doesNotMatch(JSON.stringify(DEFAULTS), /Env"/);
});

test("defaults that other parts have too are the same there", () => {
  const { drainMillis: _, drainNoticeMillis: __, tls: ___, warmUpMillis: ____, ...listen } = DEFAULTS.listen;
  assert.deepEqual(listen, { host: "127.0.0.1", port: 8080, adminHost: "127.0.0.1" });
  assert.deepEqual(
    [8080, 0].map((port) => adminPortOf({ port })),
    [8081, 0],
  );
  const unset = STAGE_SETTINGS.flatMap(([key, { usual }]) => (usual === undefined ? [[key, undefined] as const] : []));
  assert.deepEqual({ holdMillis: undefined, ...DEFAULTS.limits, ...Object.fromEntries(unset) }, DEFAULT_LIMITS);
  const { port: _port, healthPort: _health, fallbacks: _fallbacks, plaintext: _plain, ...rules } = DEFAULTS.picker;
  assert.deepEqual(rules, PICKER_RULES);
  const { intervalMillis: given, timeoutMillis, staleAfterMillis, ...times } = DEFAULTS.scrape;
  assert.equal(given, undefined);
  const { intervalMillis } = OWN_SIGNALS;
  assert.deepEqual(
    { ...times, scrapeIntervalMillis: intervalMillis, scrapeTimeoutMillis: timeoutMillis },
    KEEPER_TIMES_DEFAULT,
  );
  assert.ok(staleAfterMillis > intervalMillis, "a scrape is not stale before the next is due");
  assert.deepEqual(breakerOptions(DEFAULTS), BREAKER_DEFAULTS);
});

test("flags win over the environment, which wins over the file, which wins over the defaults", (t) => {
  const path = file(
    t,
    "listen: {port: 1}\nscrape: {intervalMillis: 11, timeoutMillis: 11}\nlimits: {attemptsMax: 4}\n",
  );
  const environment = {
    GNOMON_LISTEN_PORT: "2",
    GNOMON_SCRAPE_INTERVAL_MILLIS: "22",
    GNOMON_EMULATE_TIME_SCALE: "2.5",
  };
  const overrides = [{ path: ["listen", "port"], value: 3, from: "--port" }];
  const config = loadConfig({ file: path, environment, overrides });
  assert.equal(config.listen.port, 3);
  assert.equal(config.scrape.intervalMillis, 22);
  assert.equal(config.scrape.timeoutMillis, 11);
  assert.equal(config.limits.attemptsMax, 4);
  assert.equal(config.emulate.timeScale, 2.5);
  assert.equal(config.limits.idleMillisMax, DEFAULTS.limits.idleMillisMax);
});

test("every key that has a variable can be set by it to its own default", () => {
  // All at once: what is refused is named by its variable, and what differs by its key.
  const settable = describeKeys().filter(
    ({ variable, default: text }) => variable !== "" && text !== "" && text !== '""',
  );
  assert.ok(settable.length > 200, `${settable.length}`);
  const environment = Object.fromEntries(
    settable.map(({ variable, default: text }) => {
      const bare = parse(text) as unknown;
      return [variable, typeof bare === "string" ? bare : text];
    }),
  );
  assert.deepEqual(loadConfig({ file: undefined, environment, overrides: [] }), DEFAULTS);
});

test("all problems are reported at once, each with its path, what was accepted, what was given and where", (t) => {
  const path = file(
    t,
    [
      "scrape:",
      "  interval: 3",
      "  timeoutMillis: true",
      "endpoints:",
      "  - {url: foo/bar}",
      '  - {url: "http://a:1", id: ""}',
      "tokenizer: {kind: huggingface}",
      "discovery: {kind: kubernetes}",
      'routing: {models: {"Qwen/x": 3}}',
      "limitz: {}",
    ].join("\n"),
  );
  const environment = { GNOMON_LISTEN_PORT: "abc", GNOMON_SCRAPE_INTERVAL: "3", GNOMON_PORT: "tcp://10.0.0.1:80" };
  const lines = refused({ file: path, environment }).toSorted();
  const expected = [
    /^GNOMON_SCRAPE_INTERVAL: expected a variable that exists, got .*did you mean GNOMON_SCRAPE_INTERVAL_MILLIS\?$/,
    /^discovery\.service: expected a service, a selector, a pool or sources, .* got nothing \(.*gnomon\.yaml line 8\)$/,
    /^endpoints\[0\]\.url: expected an origin such as http.*, got "foo\/bar" \(.* line 5\)$/,
    /^endpoints\[1\]\.id: expected a string that is not empty, got "" \(.* line 6\)$/,
    /^limitz: expected one of listen, .*, got the unknown key "limitz"; did you mean limits\? \(.* line 10\)$/,
    /^listen\.port: expected an integer in \[0, 65535\], got "abc" \(GNOMON_LISTEN_PORT\)$/,
    /^routing\.models\["Qwen\/x"\]: expected a string that is not empty, got 3 \(.* line 9\)$/,
    /^scrape\.interval: expected one of intervalMillis, .*; did you mean intervalMillis\? \(.* line 2\)$/,
    /^scrape\.timeoutMillis: expected an integer in \[10, 600000\], got true \(.* line 3\)$/,
    /^tokenizer\.file: expected the path of a tokenizer\.json or its folder, .*, got nothing \(.* line 7\)$/,
  ];
  assert.equal(lines.length, expected.length, lines.join("\n"));
  expected.forEach((pattern, i) => assert.match(lines[i]!, pattern));
});

test("numbers out of bounds are refused at either end of every bounded key", () => {
  const walk = (node: ReturnType<typeof schemaNode>, path: string[]): void => {
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      if (child.properties !== undefined) walk(child, [...path, key]);
      else if (child.type === "integer" || child.type === "number") {
        const low = child.minimum ?? child.exclusiveMinimum!;
        for (const value of [low - 1, child.maximum! * 2 + 1, Number.NaN, "many"]) {
          const lines = refused({ overrides: [{ path: [...path, key], value, from: "--set" }] });
          assert.match(
            lines[0]!,
            new RegExp(`^${[...path, key].join("\\.")}: expected an? (integer|number) in .*--set`),
          );
        }
      }
    }
  };
  walk(schemaNode(CONFIG_SCHEMA), []);
});

test("secrets come from the environment by name, and neither name nor value of one that is wrong is shown", (t) => {
  const path = file(t, "endpoints:\n  - {url: 'http://a:1', apiKeyEnv: GNOMON_ENGINE_KEY}\n");
  const config = loadConfig({ file: path, environment: { GNOMON_ENGINE_KEY: "sk-1" }, overrides: [] });
  assert.equal(JSON.stringify(config).includes("sk-1"), false);
  assert.match(
    refused({ file: path })[0]!,
    /^endpoints\[0\]\.apiKeyEnv: expected a variable that is set, got no GNOMON_ENGINE_KEY/,
  );
  const pasted = refused({ file: file(t, "admin: {tokenEnv: sk-live-12345!}\n") });
  assert.match(
    pasted[0]!,
    /^admin\.tokenEnv: expected the name of an environment variable, got a value that is not shown/,
  );
  const misplaced = refused({ file: file(t, "endpoints: [{url: 'http://a:1', apiKey: sk-live-12345}]\n") });
  assert.equal([...pasted, ...misplaced].join().includes("12345"), false);
});

test("a password in a URL is refused wherever one may stand, and not shown", (t) => {
  for (const [written, shown] of [
    ["share: {url: 'redis://:sk-12345@h:6379'}", 'got "redis://…@h:6379"'],
    ["share: {sentinels: [':sk-12345@h:26379']}", 'got "…@h:26379"'],
    ["tracing: {url: 'http://u:sk-12345@h/v1'}", 'without user and password, got "http://…@h/v1"'],
    ["endpoints: [{url: 'http://:sk-12345@h'}]", 'got "http://…@h"'],
    ["tap: {router: 'http://u:sk-1@2345@h'}", 'got "http://…@h"'],
  ] as const) {
    const problems = refused({ file: file(t, written) });
    assert.equal(problems.length, 1, written);
    assert.ok(problems[0]!.includes(shown), problems[0]!);
    assert.doesNotMatch(problems[0]!, /sk-1|2345/);
  }
  assert.match(refused({ file: file(t, "tracing: {url: foo}") })[0]!, /got "foo"/);
});

test("files that are no configuration are refused, not read half", (t) => {
  assert.match(
    refused({ file: "/nowhere/gnomon.yaml" })[0]!,
    /expected a readable file, got \/nowhere\/gnomon\.yaml: no such file/,
  );
  assert.match(refused({ file: tmpdir() })[0]!, /it is a folder/);
  assert.match(refused({ file: file(t, "listen: [1\n") })[0]!, /expected YAML, got .* line/);
  assert.match(
    refused({ file: file(t, "listen:\n  port: 0\n  host: *.local\n") })[0]!,
    /expected YAML, got unresolved alias \(the anchor must be set before the alias\): \.local \(.*gnomon\.yaml line 3\)$/,
  );
  const bomb = ["a0: &a0 [0, 0]", ...[1, 2, 3, 4].map((i) => `a${i}: &a${i} [${`*a${i - 1}, `.repeat(9)}]`)];
  assert.match(refused({ file: file(t, bomb.join("\n")) })[0]!, /got excessive alias count .*gnomon\.yaml\)$/);
  assert.match(
    refused({ file: file(t, "listen: {port: 1}\nlisten: {port: 2}\n") })[0]!,
    /keys must be unique .*line 2/,
  );
  assert.match(refused({ file: file(t, "- 1\n") })[0]!, /expected a mapping, got a list of 1/);
  assert.deepEqual(loadConfig({ file: file(t, ""), environment: {}, overrides: [] }), DEFAULTS);
});

test("--set names a key and a value", () => {
  const root = schemaNode(CONFIG_SCHEMA);
  assert.deepEqual(overrideFromText("limits.attemptsMax=2", root), {
    path: ["limits", "attemptsMax"],
    value: 2,
    from: "--set",
  });
  assert.deepEqual(overrideFromText("emulate.model=a=b", root), {
    path: ["emulate", "model"],
    value: "a=b",
    from: "--set",
  });
  assert.match(
    (overrideFromText("limits.attempts=2", root) as { message: string }).message,
    /did you mean limits\.attemptsMax\?/,
  );
  assert.match((overrideFromText("limits", root) as { message: string }).message, /expected key=value/);
});

test("the table of keys has a meaning for each", () => {
  const rows = describeKeys();
  assert.ok(rows.length > 80);
  for (const row of rows) assert.ok(row.meaning !== "" && row.accepts !== "", row.key);
  assert.equal(describeAsMarkdown().trimEnd().split("\n").length, rows.length + 2);
  assert.equal(new Set(rows.map((row) => row.key)).size, rows.length);
});

test("the variable that commands send the admin token from is the gateway's where no other is named", (t) => {
  const tokenEnv = (given: { path?: string; environment: Record<string, string>; set?: string }) => {
    const overrides = given.set === undefined ? [] : [{ path: ["admin", "tokenEnv"], value: given.set, from: "--set" }];
    return loadConfig({ file: given.path, environment: given.environment, overrides }).admin;
  };
  const environment = { GNOMON_ADMIN_TOKEN: "secret", OTHER: "secret" };
  assert.equal(tokenEnv({ environment }).tokenEnv, "GNOMON_ADMIN_TOKEN");
  assert.equal(tokenEnv({ environment: {} }).tokenEnv, undefined);
  assert.equal(tokenEnv({ environment, set: "OTHER" }).tokenEnv, "OTHER");
  assert.equal(tokenEnv({ environment: { ...environment, GNOMON_ADMIN_TOKEN_ENV: "OTHER" } }).tokenEnv, "OTHER");
  const path = file(t, "admin: {tokenFile: /run/token}\n");
  assert.deepEqual(
    [tokenEnv({ path, environment }).tokenEnv, tokenEnv({ path, environment }).tokenFile],
    [undefined, "/run/token"],
  );
  assert.deepEqual(refused({ environment: { GNOMON_ADMIN_TOKEN: "" } }), [
    "admin.tokenEnv: expected a variable that is set, got no GNOMON_ADMIN_TOKEN in the environment (GNOMON_ADMIN_TOKEN)",
  ]);
});

test("a secret that a variable names may itself begin as the gateway's variables do", () => {
  const environment = { GNOMON_ADMIN_TOKEN_ENV: "GNOMON_MY_SECRET", GNOMON_MY_SECRET: "secret" };
  assert.equal(loadConfig({ file: undefined, environment, overrides: [] }).admin.tokenEnv, "GNOMON_MY_SECRET");
});

test("of a choice by type, what is wrong in the branch that was chosen is named with what is accepted there", (t) => {
  const path = file(
    t,
    `admission: { limits: { few: { type: tenant-quota, byTenant: { acme: -1, other: 0 } }, all: { type: hard-cap, requestsMax: 0 } } }`,
  );
  assert.deepEqual(
    refused({ file: path }).map((line) => line.replace(path, "FILE")),
    [
      "admission.limits.few.byTenant.acme: expected an integer in [0, 100000000], got -1 (FILE line 1)",
      "admission.limits.all.requestsMax: expected an integer in [1, 100000000], got 0 (FILE line 1)",
    ],
  );
});

test("the production configuration fits a screen, and is checked where no secret is", () => {
  const file = join(import.meta.dirname, "../../config/production.yaml");
  assert.ok(readFileSync(file, "utf8").split("\n").length <= 31);
  const given = { file, environment: {}, overrides: [] };
  const config = loadConfig({ ...given, withoutSecrets: true });
  assert.deepEqual([config.listen.host, config.prefix.secretEnv], ["0.0.0.0", "GNOMON_HASH_KEY"]);
  assert.throws(() => loadConfig(given), {
    message: /prefix\.secretEnv: expected a variable that is set, got no GNOMON_HASH_KEY/,
  });
});

test("default.yaml shows what an element of each list and mapping looks like", () => {
  const text = describeAsYaml();
  const lists = describeKeys().filter(({ key }) => /^[^[]+\[\]\.[^[.]+$/.test(key) && !key.includes("NAME"));
  assert.ok(lists.length > 20);
  for (const { key } of lists) {
    const [, list = "", field = ""] = /^(.*)\[\]\.([^.]+)/.exec(key)!;
    const block = text.split(new RegExp(`^ *#? ?${list.split(".").at(-1)}:.*\\n`, "m")).slice(1);
    assert.ok(
      block.some((after) => /^(?: *# {3}.*\n)+/.exec(after)?.[0].includes(` ${field}: `)),
      key,
    );
  }
});

test("an address of a page or a collector is an http or https URL, and an error names that", () => {
  const expected = "expected an http or https URL of at most 1024 characters, without user and password";
  for (const [key, value] of [
    ["tracing.url", "foo"],
    ["tracing.url", "collector:4318"],
    ["tracing.url", "grpc://collector:4317"],
    ["tracing.url", `http://collector/${"a".repeat(1024)}`],
    ["power.exporters", ["file:///metrics"]],
  ] as const) {
    const where = typeof value === "string" ? key : `${key}[0]`;
    const lines = refused({ overrides: [{ path: key.split("."), value, from: "--set" }] });
    assert.deepEqual(
      lines.map((line) => line.startsWith(`${where}: ${expected}, got "`)),
      [true],
      lines.join("\n"),
    );
  }
  for (const value of ["http://collector:4318/v1/traces", "https://collector"])
    loadConfig({ file: undefined, environment: {}, overrides: [{ path: ["tracing", "url"], value, from: "--set" }] });
});

test("a port for proxies that another one of the gateway takes is refused before anything starts", () => {
  const set = (values: Record<string, unknown>) =>
    Object.entries(values).map(([key, value]) => ({ path: key.split("."), value, from: `--set ${key}` }));
  for (const [values, line] of [
    [{ "listen.port": 9320, "picker.port": 9320 }, "picker.port: expected another port than listen.port, got 9320"],
    [
      { "listen.port": 9320, "picker.port": 9321 },
      "picker.port: expected another port than listen.adminPort, got 9321",
    ],
    [
      { "picker.port": 9002, "picker.healthPort": 9002 },
      "picker.healthPort: expected another port than picker.port, got 9002",
    ],
    [{ "tap.envoy.port": 8080 }, "tap.envoy.port: expected another port than listen.port, got 8080"],
  ] as const) {
    const [problem, ...more] = refused({ overrides: set(values) });
    assert.deepEqual([problem, more], [`${line} (--set ${Object.keys(values).at(-1)})`, []]);
  }
  for (const values of [
    { "listen.port": 0, "picker.port": 0, "picker.healthPort": 0 },
    { "picker.healthPort": 8080 },
    { "listen.host": "10.0.0.1", "listen.adminPort": 9002, "picker.port": 9002 },
  ])
    loadConfig({ file: undefined, environment: {}, overrides: set(values) });
});
