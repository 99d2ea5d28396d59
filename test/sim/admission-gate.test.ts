import assert from "node:assert/strict";
import { test } from "node:test";
import type { Flight } from "#sim/path/flight.ts";
import type { Outcomes } from "#sim/result/outcomes.ts";
import { AdmissionGate } from "#sim/admission-gate.ts";

test("who is to wait asks again after as long, and at the earliest a microsecond later", () => {
  for (const [micros, after] of [
    [0, 1],
    [1, 1],
    [250, 250],
  ] as const) {
    const admission = { check: () => ({ action: "delay" as const, micros }), admitted: () => assert.fail("it waits") };
    const gate = new AdmissionGate({ admission } as never, {} as Outcomes);
    assert.equal(gate.admits({} as Flight, 0), after);
    assert.equal(gate.delays, 1);
  }
});
