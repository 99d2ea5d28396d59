import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { KvEvents } from "#live/kv-events/kv-events.ts";
import { ScopeRoots } from "#live/tokenizer/scope-roots.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { FakePublisher } from "./fake-publisher.ts";

test("an engine whose publisher cannot be reached is asked again where it publishes, and one that came back too", async (t) => {
  const { intake, directory } = new FleetUnderTest();
  const inputs: Input[] = [];
  const alive = () => inputs.filter(({ kind }) => kind === "kv-events-alive").length;
  intake.listen({ accepted: (input) => void inputs.push(input) });
  let publisher: FakePublisher | undefined;
  let asked = 0;
  const server = createServer((_request, response) => {
    asked++;
    if (publisher === undefined) return response.writeHead(404).end("{}");
    const wildcard = (address: string) => address.replace("127.0.0.1", "*");
    const { publisher: endpoint, replay } = publisher.addresses;
    const source = { enable_kv_cache_events: true, publisher: "zmq", topic: "" };
    const addresses = { endpoint: wildcard(endpoint), replay_endpoint: wildcard(replay) };
    return response
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify({ "0": { ...source, ...addresses } }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const events = new KvEvents({
    intake,
    directory,
    hasherOf: blake3Hasher,
    roots: new ScopeRoots("secret"),
    isExact: () => true,
    discover: true,
    ports: { port: undefined, replayPort: undefined, topic: "" },
    blockTokens: () => 16,
    report: () => {},
    times: { replayMillis: 30_000, reconnectMillis: 30_000, retryMillis: 5, retryMillisMax: 10 },
    askAgainMillis: 0,
  });
  intake.listen(events);
  t.after(async () => {
    await events.stop();
    publisher?.close();
    server.close();
  });
  const endpoint = { id: "a", models: ["m"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  directory.add({
    ...endpoint,
    url,
    dataParallelRank: undefined,
    apiKey: undefined,
    models: [],
    state: "ready",
    detail: "",
  });
  intake.accept({ kind: "endpoint-joined", at: 0, endpoint });
  await until("it is asked", () => asked === 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  // It publishes nothing as yet; the engine that takes its place does.
  publisher = await FakePublisher.start();
  intake.accept({ kind: "blocks-cleared", at: 1, endpoint: "a" });
  await until("its events are followed", () => alive() >= 1);
  const first = publisher.addresses.publisher;
  publisher.close();
  publisher = await FakePublisher.start();
  assert.notEqual(publisher.addresses.publisher, first);
  const { addresses } = publisher;
  const isFollowed = () => alive() >= 2 && events.rowOf("a")?.publisher === addresses.publisher;
  await until("the other publisher is followed", isFollowed);
});
