import assert from "node:assert/strict";
import { type TestContext, describe, it } from "node:test";
import { stopSignal } from "#serve/process/stop-signal.ts";

describe("the stop of a server", () => {
  it("is one, though the signal comes to the process itself and again from the parent that forwards it", async (t) => {
    const { stopped, send, exits } = begun(t);
    send("SIGINT", 1_000);
    send("SIGINT", 1_004);
    send("SIGTERM", 1_499);
    assert.equal(await stopped, "SIGINT");
    assert.deepEqual(exits, []);
  });

  it("is forced by a signal that comes later", (t) => {
    const { send, exits } = begun(t);
    send("SIGTERM", 1_000);
    send("SIGTERM", 1_003);
    send("SIGINT", 1_500);
    assert.deepEqual(exits, [130]);
  });

  it("is never forced by a terminal that closes", async (t) => {
    const { stopped, send, exits } = begun(t);
    send("SIGHUP", 1_000);
    send("SIGHUP", 9_000);
    assert.equal(await stopped, "SIGHUP");
    send("SIGTERM", 9_001);
    assert.deepEqual(exits, []);
  });
});

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type StopSignal = (typeof SIGNALS)[number];

/** Signals go to the listeners that are new, by a clock of the test's own; exits are noted. */
function begun(t: TestContext) {
  let nowMillis = 0;
  const exits: unknown[] = [];
  t.mock.method(performance, "now", () => nowMillis);
  t.mock.method(process, "exit", (code: unknown) => void exits.push(code));
  const before = new Map(SIGNALS.map((name) => [name, process.listeners(name)]));
  const stopped = stopSignal();
  const added = (name: StopSignal) => process.listeners(name).filter((one) => before.get(name)?.includes(one) !== true);
  t.after(() => SIGNALS.forEach((name) => added(name).forEach((one) => process.off(name, one))));
  const send = (name: StopSignal, atMillis: number): void => {
    nowMillis = atMillis;
    for (const listener of added(name)) Reflect.apply(listener, process, [name]);
  };
  return { stopped, send, exits };
}
