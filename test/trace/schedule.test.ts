import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { Schedule, type Due } from "#trace/schedule.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { golden, readAll } from "../trace/import/read-all.ts";

function turn(session: string, at: number, more: Partial<WorkloadRequest>): WorkloadRequest {
  return { ...LENGTHS_ONLY, index: 0, arrivalMicros: 0, promptTokens: 1, outputTokens: 1, session, turn: at, ...more };
}

interface Served extends Due {
  readonly endMicros: number;
}

/** Plays a workload against a service that takes `serviceOf` microseconds, any number at once. */
function play(
  requests: readonly WorkloadRequest[],
  options: { timeScale?: number; rateScale?: number; skip?: (request: WorkloadRequest) => boolean },
  serviceOf: (request: WorkloadRequest) => number,
): Map<WorkloadRequest, Served> {
  const schedule = new Schedule({ timeScale: 1, rateScale: 1, ...options });
  const served = new Map<WorkloadRequest, Served>();
  let inFlight: Served[] = [];
  let now = 0;
  for (const request of requests) schedule.add({ request, send: options.skip?.(request) !== true }, now);
  for (;;) {
    for (let due = schedule.take(now); due !== undefined; due = schedule.take(now)) {
      if (!due.send) {
        schedule.finished(due.request, now);
        continue;
      }
      const one = { ...due, endMicros: now + serviceOf(due.request) };
      served.set(due.request, one);
      inFlight.push(one);
    }
    const next = Math.min(schedule.nextDue ?? Infinity, ...inFlight.map(({ endMicros }) => endMicros));
    if (next === Infinity) break;
    now = Math.max(now, next);
    const ended = inFlight.filter(({ endMicros }) => endMicros <= now);
    inFlight = inFlight.filter(({ endMicros }) => endMicros > now);
    for (const { request } of ended) schedule.finished(request, now);
  }
  assert.equal(schedule.size, 0, "nothing is left waiting");
  assert.equal(schedule.activeSessions, 0);
  return served;
}

describe("the schedule", () => {
  it("sends open-loop requests at their scaled arrival, whatever the service", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(10_000)),
        fc.constantFrom(0.5, 1, 4),
        fc.constantFrom(0.1, 1),
        (times, rateScale, timeScale) => {
          const requests = times.map((arrivalMicros, index) => turn("", 0, { arrivalMicros, index }));
          for (const { request, dueMicros } of play(requests, { rateScale, timeScale }, () => 100_000).values())
            assert.equal(dueMicros, Math.round((request.arrivalMicros * timeScale) / rateScale));
        },
      ),
    );
  });

  it("sends each turn its think time after the end of all that it follows, over whole recorded sessions", async () => {
    const { requests } = await readAll(golden("weka"));
    for (const timeScale of [1, 0.01]) {
      const random = randomFor(1, timeScale * 100);
      const served = play(requests, { timeScale }, () => random.below(40_000_000));
      assert.equal(served.size, requests.length);
      const of = (session: string, at?: number) =>
        [...served.values()].filter(
          ({ request }) => request.session === session && (at === undefined || request.turn === at),
        );
      for (const { request, dueMicros } of served.values()) {
        if (request.thinkMicros === undefined) continue;
        const before =
          request.parent === undefined
            ? of(request.session, request.turn - 1)
            : of(request.parent.session, request.parent.turn);
        const joined = request.joins.flatMap((session) => of(session));
        const end = Math.max(...[...before, ...(request.turn > 0 ? joined : [])].map(({ endMicros }) => endMicros));
        // A sub-agent's later turns follow its own, not its parent's.
        if (request.turn === 0 || request.parent === undefined)
          assert.equal(
            dueMicros,
            Math.round(end + request.thinkMicros * timeScale),
            `${request.session} ${request.turn}`,
          );
      }
    }
  });

  it("lets a sub-agent run beside its parent, who waits for it only when joining", () => {
    const requests = [
      turn("p", 0, {}),
      turn("p/a", 0, { parent: { session: "p", turn: 0 }, thinkMicros: 10 }),
      turn("p", 1, { thinkMicros: 5 }),
      turn("p", 2, { thinkMicros: 7, joins: ["p/a"] }),
    ];
    const served = play(requests, {}, ({ session }) => (session === "p" ? 100 : 1_000));
    assert.deepEqual(
      requests.map((request) => served.get(request)?.dueMicros),
      [0, 110, 105, 1_117],
    );
  });

  it("goes on after a turn that is left out", () => {
    const requests = [turn("s", 0, {}), turn("s", 1, { thinkMicros: 50 }), turn("s", 2, { thinkMicros: 60 })];
    const served = play(requests, { skip: ({ turn }) => turn === 1 }, () => 100);
    assert.equal(served.get(requests[2]!)?.dueMicros, 100 + 50 + 60);
  });

  it("counts conversations under way, sub-agents as their parents' own", () => {
    const schedule = new Schedule({ timeScale: 1, rateScale: 1 });
    const head = turn("p", 0, {});
    schedule.add({ request: head, send: true }, 0);
    schedule.add({ request: turn("p/a", 0, { parent: { session: "p", turn: 0 }, thinkMicros: 1 }), send: true }, 0);
    schedule.add({ request: turn("q", 0, { arrivalMicros: 5 }), send: true }, 0);
    assert.equal(schedule.activeSessions, 2);
    assert.equal(schedule.take(0)?.request, head);
    schedule.finished(head, 3);
    assert.equal(schedule.activeSessions, 1);
  });
});
