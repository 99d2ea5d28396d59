import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import { mergeWorkloads } from "#trace/transform/merge-workloads.ts";
import { scaleWorkload } from "#trace/transform/scale-workload.ts";
import { sliceWorkload } from "#trace/transform/slice-workload.ts";
import { Tally } from "#trace/transform/tally.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { collected, streamed, workloads } from "./workload-samples.ts";

const EVERYTHING = { fromMicros: 0, toMicros: Infinity, fromRequest: 0, toRequest: Infinity };

/** The control as its document writes it: group, sort by (turn, time), cut, and back into order of time. */
function cappedByTheBook(requests: readonly WorkloadRequest[], turnsMax: number): WorkloadRequest[] {
  const groups = Map.groupBy(requests, ({ session, index }) => (session === "" ? `single ${index}` : session));
  const kept = [...groups.values()].flatMap((turns) =>
    turns.toSorted((a, b) => a.turn - b.turn || a.arrivalMicros - b.arrivalMicros).slice(0, turnsMax),
  );
  return kept.sort((a, b) => a.index - b.index);
}

async function cap(requests: readonly WorkloadRequest[], turnsMax: number, left = new Tally()) {
  const turns = new TurnCap(turnsMax);
  for (const request of requests) turns.add(request);
  return collected(turns.cap(streamed(requests), left));
}

test("capping keeps what the document's control keeps, also of turns that are numbered twice, late or with holes", async () => {
  const disordered = fc
    .tuple(workloads, fc.array(fc.nat(4), { minLength: 60, maxLength: 60 }))
    .map(([requests, turns]) =>
      requests.map((request, i) => (request.session === "" ? request : { ...request, turn: turns[i]! })),
    );
  await fc.assert(
    fc.asyncProperty(disordered, fc.integer({ min: 1, max: 8 }), async (requests, turnsMax) => {
      const left = new Tally();
      const kept = await cap(requests, turnsMax, left);
      const expected = cappedByTheBook(requests, turnsMax);
      assert.deepEqual(
        kept,
        expected.map((request, index) => ({ ...request, index })),
      );
      assert.equal(kept.length + left.total, requests.length, "nothing is lost silently");
    }),
  );
});

test("capping takes conversations along that a turn started which is left out", async () => {
  const turn = (session: string, turn: number, parent?: WorkloadRequest["parent"]): WorkloadRequest => ({
    ...LENGTHS_ONLY,
    index: 0,
    arrivalMicros: 0,
    session,
    turn,
    parent,
    promptTokens: 1,
    outputTokens: 1,
  });
  const requests = [
    turn("a", 0),
    turn("early", 0, { session: "a", turn: 0 }),
    turn("a", 1),
    turn("late", 0, { session: "a", turn: 1 }),
    turn("grandchild", 0, { session: "late", turn: 0 }),
  ];
  const left = new Tally();
  assert.deepEqual(
    (await cap(requests, 1, left)).map(({ session }) => session),
    ["a", "early"],
  );
  assert.equal(left.total, 3);
});

test("a slice of everything is everything, and slices side by side hold every request once", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, fc.nat(60), async (requests, cut) => {
      assert.deepEqual(await collected(sliceWorkload(streamed(requests), EVERYTHING, new Tally())), requests);
      const before = sliceWorkload(streamed(requests), { ...EVERYTHING, toRequest: cut }, new Tally());
      const after = sliceWorkload(streamed(requests), { ...EVERYTHING, fromRequest: cut }, new Tally());
      const both = [...(await collected(before)), ...(await collected(after))];
      assert.deepEqual(
        both.map(({ promptTokens }) => promptTokens),
        requests.map(({ promptTokens }) => promptTokens),
      );
    }),
  );
});

test("every conversation of a slice begins with a turn that has an arrival of its own", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, fc.nat(60), async (requests, fromRequest) => {
      const begun = new Set<string>();
      for (const request of await collected(
        sliceWorkload(streamed(requests), { ...EVERYTHING, fromRequest }, new Tally()),
      )) {
        if (request.session === "") continue;
        if (!begun.has(request.session)) assert.equal(request.thinkMicros, undefined);
        begun.add(request.session);
      }
    }),
  );
});

test("a slice by time holds the conversations that begin in it, whole, on a clock that begins with it", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, fc.nat(20_000_000), async (requests, fromMicros) => {
      const start = (session: string) => requests.find((request) => request.session === session)!.arrivalMicros;
      const expected = requests.filter(
        ({ session, arrivalMicros }) => (session === "" ? arrivalMicros : start(session)) >= fromMicros,
      );
      const sliced = await collected(sliceWorkload(streamed(requests), { ...EVERYTHING, fromMicros }, new Tally()));
      assert.deepEqual(
        sliced.map(({ arrivalMicros }) => arrivalMicros + fromMicros),
        expected.map(({ arrivalMicros }) => arrivalMicros),
      );
    }),
  );
});

test("scaling there and back is the same to a microsecond, and touches arrivals alone", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, fc.constantFrom(0.5, 2, 4), async (requests, rate) => {
      const scaled = await collected(scaleWorkload(streamed(requests), rate));
      scaled.forEach((request, i) => {
        assert.ok(Math.abs(request.arrivalMicros * rate - requests[i]!.arrivalMicros) <= rate);
        assert.deepEqual({ ...request, arrivalMicros: 0 }, { ...requests[i]!, arrivalMicros: 0 });
      });
    }),
  );
});

test("a merge holds every request once, in order of arrival, each source's own order kept", async () => {
  await fc.assert(
    fc.asyncProperty(workloads, workloads, fc.boolean(), async (a, b, sharedContent) => {
      const merged = await collected(mergeWorkloads([streamed(a), streamed(b)], { sharedContent }));
      assert.equal(merged.length, a.length + b.length);
      assert.deepEqual(
        merged.map(({ arrivalMicros }) => arrivalMicros),
        [...a, ...b].map(({ arrivalMicros }) => arrivalMicros).sort((x, y) => x - y),
      );
      merged.forEach(({ index }, i) => assert.equal(index, i));
      const ofA = merged.filter(({ session }) => session.startsWith("0/"));
      assert.deepEqual(
        ofA.map(({ session, turn }) => `${session} ${turn}`),
        a.filter(({ session }) => session !== "").map(({ session, turn }) => `0/${session} ${turn}`),
      );
    }),
  );
});

test("sources share blocks only where that was stated, and what one shares with itself stays shared", async () => {
  const request = (ids: readonly number[]): WorkloadRequest => ({
    ...LENGTHS_ONLY,
    index: 0,
    arrivalMicros: 0,
    promptTokens: 16 * ids.length,
    outputTokens: 1,
    blockIds: Float64Array.from(ids),
    answerIds: Float64Array.from(ids),
  });
  const ids = Array.from({ length: 2_000 }, (_, i) => (i * 4_503_599_627) % Number.MAX_SAFE_INTEGER);
  const merge = (sharedContent: boolean) =>
    collected(mergeWorkloads([streamed([request(ids)]), streamed([request(ids), request(ids)])], { sharedContent }));
  const [first, second, third] = await merge(false);
  assert.deepEqual([...second!.blockIds!], [...third!.blockIds!]);
  assert.equal(new Set([...first!.blockIds!, ...second!.blockIds!]).size, 4_000);
  for (const id of second!.blockIds!) assert.ok(Number.isSafeInteger(id) && id >= 0);
  for (const one of [first, second, third]) assert.deepEqual(one!.answerIds, one!.blockIds, "answers go on alike");
  const shared = await merge(true);
  assert.deepEqual([...shared[0]!.blockIds!], [...shared[1]!.blockIds!]);
});
