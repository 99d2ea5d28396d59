import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { parseWekaEntry } from "#trace/import/weka-entry.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { golden, ids, readAll } from "./read-all.ts";

function turnOf(requests: readonly WorkloadRequest[], session: string, turn: number): WorkloadRequest {
  const found = requests.find((request) => request.session === session && request.turn === turn);
  assert.ok(found, `${session} turn ${turn}`);
  return found;
}

describe("WEKA sessions", () => {
  it("leaves out a session that is there twice, and reports it", async () => {
    const { requests, report } = await readAll(golden("weka"));
    assert.deepEqual(new Set(requests.map(({ session }) => session.split("/")[0])), new Set(["trace_a", "trace_b"]));
    assert.equal(report.adjusted.get("session equal to an earlier one, left out"), 1);
    assert.equal(report.refused.get("requests is not a list"), 1);
  });

  it("thinks from the recorded end of what came before", async () => {
    const { requests } = await readAll(golden("weka"));
    assert.equal(turnOf(requests, "trace_a", 0).thinkMicros, undefined);
    assert.equal(turnOf(requests, "trace_a", 1).thinkMicros, 5_000_000);
    assert.equal(turnOf(requests, "trace_a", 2).thinkMicros, 5_000_000);
    // The finished sub-agent ended at 95 s, after the call before.
    assert.equal(turnOf(requests, "trace_a", 3).thinkMicros, 5_000_000);
    assert.equal(turnOf(requests, "trace_a", 4).thinkMicros, 17_000_000);
  });

  it("starts sub-agents from the turn that spawned them, and joins only those that were waited for", async () => {
    const { requests } = await readAll(golden("weka"));
    // Where api_time is absent the call's end is estimated from those that have it: (100, 10), (200, 20), (0, 3), (30, 4).
    const points = [
      [100, 10],
      [200, 20],
      [0, 3],
      [30, 4],
    ] as const;
    const [xMean, yMean] = [330 / 4, 37 / 4];
    const slope =
      points.reduce((sum, [x, y]) => sum + (x - xMean) * (y - yMean), 0) /
      points.reduce((sum, [x]) => sum + (x - xMean) ** 2, 0);
    const endSeconds = 40 + yMean + slope * (150 - xMean);
    const finished = turnOf(requests, "trace_a/agent_001", 0);
    const loose = turnOf(requests, "trace_a/agent_002", 0);
    for (const agent of [finished, loose]) assert.deepEqual(agent.parent, { session: "trace_a", turn: 2 });
    assert.ok(Math.abs((finished.thinkMicros ?? 0) / 1e6 - (65 - endSeconds)) < 1e-5);
    assert.ok(Math.abs((loose.thinkMicros ?? 0) / 1e6 - (66 - endSeconds)) < 1e-5);
    assert.deepEqual(turnOf(requests, "trace_a", 3).joins, ["trace_a/agent_001"]);
    assert.deepEqual(turnOf(requests, "trace_a", 4).joins, []);
    assert.equal(turnOf(requests, "trace_a/agent_001", 1).thinkMicros, 3_000_000);
  });

  it("keeps the sessions' local ids apart", async () => {
    const { requests } = await readAll(golden("weka"));
    const of = (root: string) =>
      new Set(requests.filter(({ session }) => session.startsWith(root)).flatMap((request) => ids(request)));
    const [a, b] = [of("trace_a"), of("trace_b")];
    assert.equal(a.intersection(b).size, 0);
    // Within a session the ids still tell what is shared.
    assert.deepEqual(ids(turnOf(requests, "trace_a", 1)).slice(0, 4), ids(turnOf(requests, "trace_a", 0)));
    assert.deepEqual(
      ids(turnOf(requests, "trace_a/agent_001", 0)).slice(0, 2),
      ids(turnOf(requests, "trace_a/agent_002", 0)).slice(0, 2),
    );
  });

  it("gives all sessions the asked share of tool and system prompt in common, and no more", async () => {
    for (const [share, blocks] of [
      [0, 0],
      [0.5, 1],
      [1, 2],
    ] as const) {
      const { requests } = await readAll(golden("weka"), { sharedPrefix: share });
      const a = ids(turnOf(requests, "trace_a", 0));
      const b = ids(turnOf(requests, "trace_b", 0));
      const common = a.findIndex((id, i) => id !== b[i]);
      assert.equal(common, blocks, `share ${share} of 160 tokens`);
      const agent = ids(turnOf(requests, "trace_a/agent_001", 0));
      assert.notEqual(agent[0], a[0], "a sub-agent has another prompt");
      assert.deepEqual(ids(turnOf(requests, "trace_a", 1)).slice(0, 4), a, "turns still share");
    }
  });

  it("takes a prompt of tools or of the system that nobody counts for none", () => {
    const entry = { type: "subagent", t: 1, requests: [] };
    const counted = parseWekaEntry({ ...entry, tool_tokens: 7, system_tokens: 9 });
    assert.ok(typeof counted === "object" && counted.kind === "subagent");
    assert.deepEqual([counted.toolTokens, counted.systemTokens], [7, 9]);
    const uncounted = parseWekaEntry(entry);
    assert.ok(typeof uncounted === "object" && uncounted.kind === "subagent");
    assert.deepEqual([uncounted.toolTokens, uncounted.systemTokens], [0, 0]);
  });

  it("starts sessions at the asked rate", async () => {
    const together = await readAll(golden("weka"), { sessionsPerSecond: 0 });
    assert.equal(turnOf(together.requests, "trace_b", 0).arrivalMicros, 0);
    const slow = await readAll(golden("weka"), { sessionsPerSecond: 0.01 });
    const fast = await readAll(golden("weka"), { sessionsPerSecond: 1 });
    const arrival = (all: typeof slow) => turnOf(all.requests, "trace_b", 0).arrivalMicros;
    assert.ok(Math.abs(arrival(slow) - 100 * arrival(fast)) <= 100);
  });
});
