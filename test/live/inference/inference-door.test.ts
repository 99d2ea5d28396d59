import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { BodyRoom } from "#live/http/body-room.ts";
import { bodyRules, DEFAULT_LIMITS } from "#live/http/limits.ts";
import { newCounters } from "#live/base/gateway-counters.ts";
import { InFlight } from "#live/http/in-flight.ts";
import { Routes } from "#live/http/route.ts";
import { type DoorShared, InferenceDoor } from "#live/inference/inference-door.ts";

import { CHAT, ask, errorOf } from "../gateway/rig.ts";

test("a defect at the door is answered, counted, and reported to the observer", async () => {
  const defect = new Error("a defect");
  const bugs: unknown[] = [];
  const counters = newCounters();
  const observe = { finished: () => {}, bug: (error: unknown) => void bugs.push(error) };
  const inFlight = new InFlight(10);
  const shared = {
    counters,
    observe,
    inFlight,
    sequence: 0,
    bodies: new BodyRoom(bodyRules(DEFAULT_LIMITS)),
  } as unknown as DoorShared;
  const door = new InferenceDoor(
    shared,
    () => {
      throw defect;
    },
    new Routes(),
  );
  const server = createServer((incoming, outgoing) => door.serve(incoming, outgoing)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  try {
    const got = await ask(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, CHAT);
    assert.equal(got.status, 500);
    assert.equal(errorOf(got).code, 500);
    assert.deepEqual(bugs, [defect]);
    assert.equal(counters.internalErrors, 1);
  } finally {
    inFlight.stop();
    server.closeAllConnections();
    server.close();
  }
});
