import assert from "node:assert/strict";
import { test } from "node:test";
import { announcedAddress, configuredAddress } from "#live/kv-events/event-address.ts";

const NO_PORTS = { port: undefined, replayPort: undefined, topic: "" };
const ENGINE = { url: "http://10.0.0.7:8000", dataParallelRank: undefined };

test("a label names the port, else the configuration; ranks publish above it", () => {
  const ports = { port: 5557, replayPort: 6557, topic: "kv" };
  assert.equal(configuredAddress(ENGINE, {}, NO_PORTS), undefined);
  assert.deepEqual(configuredAddress(ENGINE, {}, ports), {
    publisher: "tcp://10.0.0.7:5557",
    replay: "tcp://10.0.0.7:6557",
    binds: false,
    topic: "kv",
  });
  const labels = { "gnomon/kv-events-port": "7000", "gnomon/kv-events-replay-port": "no port" };
  const ranked = configuredAddress({ ...ENGINE, dataParallelRank: 3 }, labels, { ...ports, replayPort: undefined });
  assert.deepEqual([ranked?.publisher, ranked?.replay], ["tcp://10.0.0.7:7003", undefined]);
  assert.equal(configuredAddress(ENGINE, { "gnomon/kv-events-port": "70000" }, NO_PORTS), undefined);
});

test("a server's answer names its ranks' ports, at its own host", () => {
  const rank = (port: number) => ({
    enable_kv_cache_events: true,
    publisher: "zmq",
    endpoint: `tcp://*:${port}`,
    replay_endpoint: null,
    topic: "dp",
  });
  const answer = { "0": rank(18_201), "1": { ...rank(18_202), replay_endpoint: "tcp://*:18302" } };
  const first = announcedAddress(answer, ENGINE);
  assert.deepEqual(first, { publisher: "tcp://10.0.0.7:18201", replay: undefined, binds: false, topic: "dp" });
  const second = announcedAddress(answer, { ...ENGINE, dataParallelRank: 1 });
  assert.deepEqual([second?.publisher, second?.replay], ["tcp://10.0.0.7:18202", "tcp://10.0.0.7:18302"]);
  for (const none of [undefined, {}, [], { "0": 3 }, { "0": { ...rank(1), enable_kv_cache_events: false } }])
    assert.equal(announcedAddress(none, ENGINE), undefined);
});

test("an engine that connects itself is awaited on this machine, and nowhere else", () => {
  const source = { enable_kv_cache_events: true, publisher: "zmq", replay_endpoint: null, topic: "" };
  const here = announcedAddress({ "0": { ...source, endpoint: "tcp://127.0.0.1:9001" } }, ENGINE);
  assert.deepEqual([here?.publisher, here?.binds], ["tcp://127.0.0.1:9001", true]);
  assert.equal(announcedAddress({ "0": { ...source, endpoint: "tcp://epp.example:9001" } }, ENGINE), undefined);
});
