import assert from "node:assert/strict";
import { test } from "node:test";
import { EndpointDirectory, type EndpointEntry } from "#live/endpoints/endpoint-directory.ts";
import { ServedHeader } from "#live/tap/served-header.ts";

function entry(url: string, id = url, dataParallelRank?: number): EndpointEntry {
  return { id, url, dataParallelRank, apiKey: undefined, state: "ready", detail: "", models: [] };
}

const [ONE, TWO, RANKED] = ["http://10.0.0.5:8000", "http://[fd00::6]:8000", "http://10.0.0.7:8000"];

function served(names: readonly string[] = []): ServedHeader {
  const directory = new EndpointDirectory();
  for (const url of [ONE, TWO]) directory.add(entry(url));
  for (const rank of [0, 1]) directory.add(entry(RANKED, `${RANKED}#${rank}`, rank));
  return new ServedHeader(directory, names);
}

const CASES: readonly (readonly [what: string, header: string, text: string, endpoints: readonly string[]])[] = [
  ["SMG", "x-smg-routed-worker-id", "http://10.0.0.5:8000", [ONE]],
  ["SMG, a rank", "x-smg-routed-worker-id", "http://10.0.0.7:8000@1", [`${RANKED}#1`]],
  ["a picker's proxy", "x-gateway-destination-endpoint-served", "10.0.0.5:8000", [ONE]],
  ["IPv6", "x-gateway-destination-endpoint", "[fd00::6]:8000", [TWO]],
  ["AIBrix", "target-pod", "10.0.0.5:8000", [ONE]],
  ["nginx, which tried two", "x-upstream-addr", "10.0.0.9:8000, 10.0.0.5:8000", [ONE]],
  ["a path", "x-backend-server", "http://10.0.0.5:8000/v1", [ONE]],
  ["this project's gateway", "x-gnomon-endpoint", `${RANKED}#0`, [`${RANKED}#0`]],
  ["a server whose ranks are listed", "target-pod", "10.0.0.7:8000", [`${RANKED}#0`, `${RANKED}#1`]],
  ["an engine that is not listed", "target-pod", "10.0.0.9:8000", []],
  ["no address", "x-backend-server", "uvicorn", []],
  ["a long text", "x-upstream-addr", `${"1".repeat(5_000)}:8000`, []],
];

for (const [what, header, text, endpoints] of CASES) {
  test(`${what}: ${header}`, () => {
    const found = served();
    for (let times = 0; times < 2; times++) assert.deepEqual(found.endpointsOf({ [header]: text }), endpoints);
    assert.equal(found.unlisted, endpoints.length === 0 ? 2 : 0);
  });
}

test("a header that is named comes before those that are known", () => {
  const headers = { "x-served-by": "10.0.0.5:8000", "x-upstream-addr": "[fd00::6]:8000" };
  assert.deepEqual(served(["X-Served-By"]).endpointsOf(headers), [ONE]);
  assert.deepEqual(served().endpointsOf(headers), [TWO]);
});

test("an endpoint that joins or leaves is known at once", () => {
  const directory = new EndpointDirectory();
  const found = new ServedHeader(directory);
  const headers = { "target-pod": "10.0.0.5:8000" };
  assert.deepEqual(found.endpointsOf(headers), []);
  directory.add(entry(ONE));
  assert.deepEqual(found.endpointsOf(headers), [ONE]);
  directory.remove(ONE);
  assert.deepEqual(found.endpointsOf(headers), []);
});
