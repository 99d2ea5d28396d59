import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";

import { ConfigError } from "#config/config-error.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import type { FleetKeeper } from "#live/keeper/fleet-keeper.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import type { Target } from "#live/endpoints/target.ts";
import { EndpointsFileSource } from "#serve/endpoints/endpoints-file-source.ts";

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "endpoints-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function followed(t: TestContext, file: string, environment: Record<string, string> = {}) {
  const shown: (readonly Target[])[] = [];
  const events: KeeperEvent[] = [];
  const sources = new SourceBoard();
  const keeper = { setTargets: (_: string, targets: readonly Target[]) => void shown.push(targets) } as FleetKeeper;
  const config = CONFIG_SCHEMA.parse({ discovery: { file, fileWatchMillis: 20 } });
  const stack = { keeper, report: (event: KeeperEvent) => void events.push(event), sources };
  const source = new EndpointsFileSource(file, stack, config, environment);
  t.after(() => source.stop());
  return { shown, events, sources, urls: () => shown.at(-1)!.map(({ url }) => url) };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

test("a file of engines, YAML or JSON, has what the configuration's list has, and who is cordoned", (t) => {
  const file = join(folderOf(t), "endpoints.yaml");
  writeFileSync(
    file,
    "endpoints:\n  - url: http://10.0.0.1:8000\n    id: a\n    labels: {role: decode}\n    apiKeyEnv: KEY\n    cordoned: true\n  - url: http://10.0.0.2:8000\n    dataParallelRanks: 2\n",
  );
  const { shown, sources } = followed(t, file, { KEY: "secret" });
  assert.deepEqual(
    shown[0]!.map(({ id, apiKey, cordoned, labels }) => [id, apiKey, cordoned, labels["role"]]),
    [
      ["a", "secret", true, "decode"],
      ["http://10.0.0.2:8000#0", undefined, false, undefined],
      ["http://10.0.0.2:8000#1", undefined, false, undefined],
    ],
  );
  assert.deepEqual(
    sources.rows().map(({ source, up, targets }) => [source, up, targets]),
    [[`file ${file}`, true, 3]],
  );
  writeFileSync(file, JSON.stringify({ endpoints: [{ url: "http://10.0.0.9:8000" }] }));
  assert.deepEqual(followed(t, file).urls(), ["http://10.0.0.9:8000"]);
});

test("a ConfigMap's swapped link is a change; one that is wrong, gone or half changes nothing and names path and line", async (t) => {
  const folder = folderOf(t);
  const mount = (name: string, text: string): void => {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "endpoints.yaml"), text);
    symlinkSync(name, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  mount("..1", "endpoints: [{url: 'http://10.0.0.1:8000'}]\n");
  const file = join(folder, "endpoints.yaml");
  symlinkSync("..data/endpoints.yaml", file);
  const { shown, events, sources, urls } = followed(t, file);
  mount("..2", "endpoints: [{url: 'http://10.0.0.2:8000'}]\n");
  await until("the swapped link", () => shown.length === 2);
  assert.deepEqual(urls(), ["http://10.0.0.2:8000"]);
  mount("..3", "endpoints:\n  - url: http://10.0.0.3:8000\n  - url: 10.0.0.4\n    label: {}\n");
  await until("a refusal", () => events.length === 1);
  assert.deepEqual(urls(), ["http://10.0.0.2:8000"]);
  const [{ kind, subject, detail }] = events as [KeeperEvent];
  assert.deepEqual([kind, subject], ["source-failed", `file ${file}`]);
  assert.match(detail, /endpoints\[1\]\.url: expected an origin .*got "10\.0\.0\.4" \(.*endpoints\.yaml line 3\)/);
  assert.match(detail, /endpoints\[1\]\.label: .*did you mean labels\?/);
  assert.equal(sources.rows()[0]!.up, false);
  mount("..4", "endpoints: [{url: 'http://10.0.0.5:8000'}, {url: 'http://10.0.0.5:8000'}]\n");
  await until("another refusal", () => events.length === 2);
  assert.match(events[1]!.detail, /http:\/\/10\.0\.0\.5:8000 is listed twice/);
  mount("..5", "endpoints:\n  - url: http://10.0.0.6:8000\n    labels: {model: *llama}\n");
  await until("an alias of nothing", () => events.length === 3);
  assert.match(events[2]!.detail, /got unresolved alias .*: llama \(.*endpoints\.yaml line 3\)/);
  mount("..6", "endpoints: []\n");
  await until("an empty list", () => shown.length === 3);
  assert.deepEqual(urls(), []);
  assert.deepEqual(events.at(-1)!.kind, "source-recovered");
});

test("a file that is gone for a while leaves its endpoints, and is well again once it is back as it was", async (t) => {
  const file = join(folderOf(t), "endpoints.json");
  const text = '{"endpoints": [{"url": "http://10.0.0.1:8000"}]}';
  writeFileSync(file, text);
  const { shown, events, sources } = followed(t, file);
  rmSync(file);
  await until("noticed", () => events.length === 1);
  assert.match(events[0]!.detail, /endpoints\.json: ENOENT; the endpoints of before stay/);
  writeFileSync(file, text);
  await until("well again", () => events.length === 2);
  assert.deepEqual([events[1]!.kind, sources.rows()[0]!.up, shown.length], ["source-recovered", true, 1]);
});

test("a start with a file that is missing or wrong is refused with its path", (t) => {
  const file = join(folderOf(t), "endpoints.yaml");
  assert.throws(
    () => followed(t, file),
    (error) => error instanceof ConfigError && error.lines[0]!.includes(file),
  );
  writeFileSync(file, "endpoints: [");
  assert.throws(
    () => followed(t, file),
    (error) => error instanceof ConfigError && error.lines[0]!.includes(file),
  );
});
