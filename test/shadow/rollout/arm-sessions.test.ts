import assert from "node:assert/strict";
import { test } from "node:test";
import { armSessions } from "#shadow/rollout/arm-sessions.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { HEADER } from "../../trace/trace-samples.ts";

type Outcome = "ok" | "failed" | "open";

/** A turn of a session at an arm; "" where no rollout took it. */
function turn(
  session: string,
  arm: string,
  at: number,
  end: number,
  outcome: Outcome = "ok",
  rollout = "r",
): TraceItem[] {
  const id = `${session}-${at}`;
  const taken = arm === "" ? undefined : { rollout: { name: rollout, arm, window: 0 } };
  const arrived = { kind: "request-arrived", at, request: { id, session } };
  const items = [{ kind: "record", input: arrived, decision: { kind: "routed", ...taken } }];
  const finished = {
    kind: "record",
    input: { kind: "request-finished", at: end, requestId: id, outcome },
    decision: undefined,
  };
  return [...items, ...(outcome === "open" ? [] : [finished])] as unknown as TraceItem[];
}

async function* trace(...turns: readonly TraceItem[][]): AsyncGenerator<TraceItem> {
  yield { kind: "run", header: HEADER };
  yield* turns.flat().toSorted((a, b) => timeOf(a) - timeOf(b));
}

function timeOf(item: TraceItem): number {
  return item.kind === "record" ? item.input.at : 0;
}

test("a session counts for the arm that had all of it, from its first request to its last answer", async () => {
  const found = await armSessions(
    trace(
      turn("a", "control", 0, 10),
      turn("a", "control", 50, 70),
      turn("b", "control", 5, 200),
      // Sub-agents: what began last ends first.
      turn("b", "control", 20, 30),
      turn("c", "other", 100, 110),
      turn("c", "other", 150, 400),
    ),
    "r",
  );
  assert.deepEqual([...found.keys()].toSorted(), ["control", "other"]);
  assert.equal(found.get("control")!.count, 2);
  assert.equal(found.get("control")!.mean, (70 + 195) / 2);
  assert.equal(found.get("other")!.mean, 300);
});

test("one that moved between arms, was not answered whole, has one request or is of another rollout counts for none", async () => {
  const found = await armSessions(
    trace(
      turn("moved", "control", 0, 10),
      turn("moved", "other", 20, 30),
      turn("back", "control", 0, 10),
      turn("back", "other", 20, 30),
      turn("back", "control", 40, 50),
      turn("began before", "", 0, 10),
      turn("began before", "control", 20, 30),
      turn("failed", "control", 0, 10),
      turn("failed", "control", 20, 30, "failed"),
      turn("open", "control", 0, 10),
      turn("open", "control", 20, 30, "open"),
      turn("single", "control", 0, 10),
      turn("elsewhere", "control", 0, 10, "ok", "q"),
      turn("elsewhere", "control", 20, 30, "ok", "q"),
      turn("", "control", 0, 10),
      turn("", "control", 20, 30),
    ),
    "r",
  );
  assert.deepEqual([...found], []);
});
