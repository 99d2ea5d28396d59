import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "#config/load.ts";
import { loadProfile } from "#config/profile-file.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { NOT_ASKED } from "#live/keeper/member.ts";
import { announce, announceStart } from "#serve/ready/announce.ts";

const FACTS = {
  url: "http://h:1",
  adminUrl: "http://h:2",
  plan: { profile: loadProfile("gnomon"), config: { tap: { router: undefined, envoy: {} } } } as never,
  emulated: true,
};

async function announced(second: { state: string; detail: string }, then: (entry: never) => void): Promise<string> {
  const directory = new EndpointDirectory();
  directory.add({ id: "a", url: "http://a", state: "ready", detail: "", models: [] } as never);
  const entry = { id: "b", url: "http://b", models: [], ...second } as never;
  directory.add(entry);
  let text = "";
  const out = { isTTY: true, write: (line: string) => (text += line) !== "" } as never;
  const over = announce({ directory, readiness: { draining: false, waitsFor: () => [] } }, FACTS, out);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(text === "", second.detail === NOT_ASKED, "it waits for an endpoint that was never asked, for no other");
  then(entry);
  await over;
  return text.split("\n")[0]!;
}

test("the number of engines is reported once each was asked", async () => {
  const joins = (entry: { state: string; detail: string }) => Object.assign(entry, { state: "ready", detail: "" });
  assert.equal(
    await announced({ state: "waiting", detail: NOT_ASKED }, joins),
    "gnomon is ready at http://h:1: 2 emulated engines, profile gnomon",
  );
});

test("an endpoint that was asked and cannot be reached keeps nobody waiting", async () => {
  assert.equal(
    await announced({ state: "waiting", detail: "connection refused" }, () => {}),
    "gnomon is ready at http://h:1: 1 of 2 emulated engines, profile gnomon",
  );
});

test("a person at a terminal learns what the start is about; a collector of logs gets no such line", () => {
  const lines: string[] = [];
  const shown = (isTTY: boolean, ...overrides: { path: readonly string[]; value: unknown; from: string }[]) => {
    const config = loadConfig({ file: undefined, environment: {}, overrides });
    announceStart("http://h:1", config, { isTTY, write: (line: string) => lines.push(line) > 0 });
    return lines.splice(0).join("");
  };
  const set = (path: string, value: unknown) => ({ path: path.split("."), value, from: "--set" });
  assert.match(shown(true), /^gnomon listens at http:\/\/h:1, starts \d emulated engines, and warms up .* \.\.\.\n$/);
  const endpoints = set("endpoints", [{ url: "http://127.0.0.1:8000" }]);
  const listed = shown(true, endpoints, set("listen.warmUpMillis", 0));
  assert.equal(listed, "gnomon listens at http://h:1, looks for its engines ...\n");
  assert.equal(shown(false), "");
});
