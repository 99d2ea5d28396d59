import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { conversations, startOf } from "#trace/conversations.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { linkedWorkload, shuffled } from "./linked-workload.ts";

const listed = (requests: readonly WorkloadRequest[]) => [...conversations(requests)].map((group) => [...group]);

test("any order of a workload gives the same groups, with every request once", () => {
  fc.assert(
    fc.property(linkedWorkload, fc.nat(), (workload, seed) => {
      const groups = listed(workload);
      assert.deepEqual(listed(shuffled(workload, seed)), groups);
      assert.deepEqual(
        groups
          .flat()
          .map(({ index }) => index)
          .sort((a, b) => a - b),
        workload.map(({ index }) => index).sort((a, b) => a - b),
      );
      assert.deepEqual(listed(groups.flat()), groups, "what is in order stays");
    }),
  );
});

test("groups come by their start; in them everything stands behind what it waits for", () => {
  fc.assert(
    fc.property(linkedWorkload, fc.nat(), (workload, seed) => {
      let start = -Infinity;
      const places = new Map<string, number>();
      const groupOf = new Map<string, number>();
      const groups = listed(shuffled(workload, seed));
      groups.flat().forEach(({ session, turn }, place) => places.set(`${session}/${turn}`, place));
      groups.forEach((group, number) => {
        assert.ok(startOf(group) >= start);
        start = startOf(group);
        for (const { session, turn, parent, joins } of group) {
          if (session !== "") assert.equal(groupOf.get(session) ?? number, number, "a conversation in one group");
          if (session !== "") groupOf.set(session, number);
          const place = places.get(`${session}/${turn}`)!;
          if (session !== "" && turn > 0) assert.ok(places.get(`${session}/${turn - 1}`)! < place);
          if (parent !== undefined) assert.ok(places.get(`${parent.session}/${parent.turn}`)! < place);
          for (const name of joins)
            for (const other of workload)
              if (other.session === name) assert.ok(places.get(`${name}/${other.turn}`)! < place);
        }
      });
    }),
  );
});

test("conversations that wait for one another in a circle are given out whole", () => {
  const one = { arrivalMicros: 0, turn: 0, thinkMicros: undefined, parent: undefined } as const;
  const base = { promptTokens: 1, outputTokens: 1, blockIds: undefined, blockTokens: 16, text: undefined };
  const rest = { tokenIds: undefined, tenant: "", sloClass: "", model: "" };
  const circle: WorkloadRequest[] = [
    { ...one, ...base, ...rest, index: 0, session: "a", joins: ["b"] },
    { ...one, ...base, ...rest, index: 1, session: "b", joins: ["a"] },
  ];
  assert.deepEqual(listed(circle), [circle]);
});

test("requests of one time go by their index, given in whatever order", () => {
  const rest = { promptTokens: 1, outputTokens: 1, blockIds: undefined, blockTokens: 16, text: undefined };
  const more = { tokenIds: undefined, tenant: "", sloClass: "", model: "", turn: 0, thinkMicros: undefined };
  const [first, second] = [0, 1].map((index): WorkloadRequest => {
    return { ...rest, ...more, index, arrivalMicros: 5, session: "", parent: undefined, joins: [] };
  });
  assert.deepEqual(listed([second!, first!]), [[first], [second]]);
});
