import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { stringify } from "yaml";

import { ConfigError } from "#config/config-error.ts";
import { loadConfig } from "#config/load.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { liveKeys } from "#serve/clients/live-keys.ts";
import { adminTokens } from "#serve/process/secrets.ts";

const sha256 = (key: string): string => createHash("sha256").update(key).digest("hex");
const entry = (key: string, more: object = {}): object => ({ name: `of-${key}`, sha256: sha256(key), ...more });

function keysFile(t: TestContext, keys: readonly object[]) {
  const folder = mkdtempSync(join(tmpdir(), "keys-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "keys.yaml");
  const write = (text: string): void => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  write(stringify({ keys }));
  return { file, write, replace: (next: readonly object[]) => write(stringify({ keys: next })) };
}

function opened(t: TestContext, file: string, environment: Record<string, string> = {}) {
  const events: FaultEvent[] = [];
  const clients = { keysFile: file, keysWatchMillis: 2, ...("KEYS" in environment && { keysEnv: "KEYS" }) };
  const keys = liveKeys(CONFIG_SCHEMA.parse({ clients }), environment, (event) => void events.push(event));
  t.after(() => keys.stop());
  const tenantOf = (key: string) => keys.auth!(`Bearer ${key}`, undefined)?.tenant;
  return { keys, events, tenantOf };
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
}

test("a key opens by its digest alone, as a bearer token or as x-api-key, and names its tenant", (t) => {
  const { file } = keysFile(t, [entry("one", { tenant: "acme", class: "batch", classes: ["standard"] }), entry("two")]);
  const { keys, tenantOf } = opened(t, file, { KEYS: "plain, other" });
  assert.deepEqual(keys.auth!("bearer one", undefined), {
    tenant: "acme",
    key: "",
    sloClass: "batch",
    sloClasses: ["standard"],
  });
  assert.equal(keys.auth!(undefined, "two")?.tenant, "of-two");
  assert.deepEqual(keys.auth!("Bearer plain", undefined), {
    tenant: undefined,
    key: sha256("plain"),
    sloClass: "",
    sloClasses: undefined,
  });
  assert.ok(keys.auth!("Basic abc", "other"));
  for (const wrong of ["", "on", "onee", sha256("one"), "PLAIN", "plain, other"]) {
    assert.equal(keys.auth!(`Bearer ${wrong}`, undefined), undefined, wrong);
  }
  assert.equal(tenantOf("three"), undefined);
});

test("a key that stands where entries belong is refused and not shown", (t) => {
  const { file, write } = keysFile(t, []);
  for (const text of [
    "sk-secret-1\n",
    "sk-secret-1\nsk-secret-2\n",
    "- sk-secret-1\n- sk-secret-2\n",
    "keys: sk-secret-1\n",
    "sk-secret-1: acme\n",
    "keys: [{name: a, sk-secret-1: b}]\n",
  ]) {
    write(text);
    assert.throws(
      () => opened(t, file),
      (error) => {
        assert.ok(error instanceof ConfigError);
        const message = error.lines.join("; ");
        assert.match(message, /not shown \(.*keys\.yaml line \d\)/, text);
        assert.ok(!message.includes("secret"), message);
        return true;
      },
    );
  }
  write("keys: [{name: a, tennant: b}]\n");
  assert.throws(
    () => opened(t, file),
    (error) => error instanceof ConfigError && /"tennant"; did you mean tenant/.test(error.lines.join("; ")),
  );
});

test("a key that stands in a wrong field is refused with the field and what it accepts, and not shown", (t) => {
  const { file, write } = keysFile(t, []);
  const long = `sk-secret-${"1".repeat(64)}`;
  const wrong: [object, RegExp][] = [
    [{ name: "sk-secret/1" }, /^keys\[0\]\.name: expected 1 to 64 of letters, /],
    [{ name: 7_351_982_467 }, /^keys\[0\]\.name: expected 1 to 64 of letters, /],
    [{ tenant: "sk secret 1" }, /^keys\[0\]\.tenant: expected 1 to 64 of letters, /],
    [{ class: long }, /^keys\[0\]\.class: expected at most 64 characters, /],
    [{ classes: [long] }, /^keys\[0\]\.classes\[0\]: expected at most 64 characters, /],
    [{ classes: "sk-secret-1" }, /^keys\[0\]\.classes: expected a list of at most 32, /],
    [{ expires: "sk-secret-1" }, /^keys\[0\]\.expires: expected a date and time such as 2026-/],
    [{ sha256: "sk-secret-1" }, /^keys\[0\]\.sha256: expected a key's SHA-256, /],
  ];
  for (const [fields, expected] of wrong) {
    write(stringify({ keys: [entry("one", fields)] }));
    assert.throws(
      () => opened(t, file),
      (error) => {
        assert.ok(error instanceof ConfigError);
        const [line = "", ...others] = error.lines;
        assert.match(line, expected);
        assert.match(line, /, got a value that is not shown \(.*keys\.yaml line \d\)$/);
        assert.doesNotMatch(line, /secret|7351982467/);
        assert.deepEqual(others, []);
        return true;
      },
    );
  }
});

test("a variable counts without the line feed that a Secret was encoded with", (t) => {
  const environment = { TOKEN: "secret\n", KEYS: "one, two\r\n" };
  const config = CONFIG_SCHEMA.parse({ admin: { tokenEnv: "TOKEN", statusTokenEnv: "TOKEN" } });
  assert.deepEqual(adminTokens(config, environment), { adminToken: "secret", statusToken: "secret" });
  assert.ok(opened(t, keysFile(t, []).file, environment).keys.auth!("Bearer two", undefined));
  const overrides = [{ path: ["admin", "tokenEnv"], value: "BLANK", from: "--set" }];
  assert.throws(() => loadConfig({ file: undefined, environment: { BLANK: "\n" }, overrides }), ConfigError);
});

test("the file is followed: keys come, are revoked and expire; what cannot be read changes nothing and shows no digest", async (t) => {
  const { file, write, replace } = keysFile(t, [entry("one"), entry("two")]);
  const { events, tenantOf, keys } = opened(t, file);
  replace([entry("two", { expires: "2001-01-01T00:00:00Z" }), entry("three")]);
  await until(() => events.length === 1);
  assert.deepEqual(["one", "two", "three"].map(tenantOf), [undefined, undefined, "of-three"]);
  assert.deepEqual([events[0]!.kind, events[0]!.figures], ["keys-changed", { keys: 2 }]);
  for (const [text, problem] of [
    ["keys: [", /expected YAML/],
    [
      stringify({ keys: [entry("x", { sha256: "abc", tenant: "no spaces" })] }),
      /sha256: expected.*64 hexadecimal.*line 3.*tenant: expected/,
    ],
    [
      stringify({ keys: [entry("x"), entry("x")] }),
      /keys\[1\]\.name: is there twice.*keys\[1\]\.sha256: is there twice/,
    ],
  ] as const) {
    const before = events.length;
    write(text);
    await until(() => events.length === before + 1);
    assert.equal(events.at(-1)!.kind, "keys-refused");
    assert.match(events.at(-1)!.detail, problem);
    assert.doesNotMatch(events.at(-1)!.detail, new RegExp(`abc|${sha256("x")}`));
    assert.equal(tenantOf("three"), "of-three");
  }
  rmSync(file);
  await until(() => events.length === 5);
  assert.match(events[4]!.detail, /ENOENT/);
  assert.equal(keys.auth!("Bearer three", undefined)?.tenant, "of-three");
});

test("a file that is wrong at the start is refused with its problems", (t) => {
  const { file } = keysFile(t, [{ name: "x" }]);
  assert.throws(() => opened(t, file), ConfigError);
});

test("a file that cannot be read is refused by its key, of keys and of tokens alike", (t) => {
  const { file } = keysFile(t, []);
  const refused = (line: string) => (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.deepEqual(error.lines, [line]);
    return true;
  };
  const missing = `${file}.none`;
  const unreadable = `expected a readable file, got ${missing}: no such file`;
  assert.throws(() => opened(t, missing), refused(`clients.keysFile: ${unreadable}`));
  const tokens = (admin: object) => () => adminTokens(CONFIG_SCHEMA.parse({ admin }), {});
  for (const key of ["tokenFile", "statusTokenFile"])
    assert.throws(tokens({ [key]: missing }), refused(`admin.${key}: ${unreadable}`));
  writeFileSync(missing, "\n");
  assert.throws(
    tokens({ tokenFile: missing }),
    refused(`admin.tokenFile: expected a token, got an empty file ${missing}`),
  );
});
