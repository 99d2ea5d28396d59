import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";

import { UNREAD_MICROS_MIN, UnreadAnswers, type UnreadSocket } from "#live/answer/unread-answers.ts";

interface Client extends UnreadSocket {
  writableLength: number;
  movedAt: number;
  isCut: boolean;
}

const MAX = 1_000;
const step = fc.record({
  client: fc.nat(5),
  bytes: fc.nat(600),
  micros: fc.integer({ min: 1, max: UNREAD_MICROS_MIN }),
});

test("beyond the bound who has not read for longest is cut, after his time, and nobody else", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let cuts = 0;
      const unread = new UnreadAnswers(MAX, () => cuts++);
      let begun = 0;
      unread.onBegin(() => begun++);
      const clients = Array.from({ length: 6 }, () => {
        const client: Client = { writableLength: 0, movedAt: 0, isCut: false, destroy: () => (client.isCut = true) };
        return client;
      });
      let now = 1;
      let waiting = 0;
      for (const { client: which, bytes, micros } of steps) {
        now += micros;
        const client = clients[which]!;
        if (client.isCut) continue;
        if (client.writableLength !== bytes) client.movedAt = now;
        client.writableLength = bytes;
        const begins = unread.isEmpty && bytes > 0;
        const before = begun;
        unread.look(client, now);
        assert.equal(begun - before, Number(begins), "who waits for looks learns of the first alone");
        const open = clients.filter(({ isCut }) => !isCut);
        const sum = open.reduce((all, one) => all + one.writableLength, 0);
        assert.equal(unread.bytes, sum);
        assert.equal(unread.isFull, sum > MAX);
        waiting++;
        unread.onRoom(() => waiting--);
        for (const one of open) unread.look(one, now);
        unread.settle(now);
        const gone = open.filter(({ isCut }) => isCut);
        const left = open.filter(({ isCut, writableLength }) => !isCut && writableLength > 0);
        let over = sum;
        for (const one of gone.toSorted((a, b) => a.movedAt - b.movedAt)) {
          assert.ok(over > MAX, "cut without need");
          assert.ok(now - one.movedAt >= UNREAD_MICROS_MIN, "cut before its time");
          for (const other of left) assert.ok(other.movedAt >= one.movedAt, "another has not read for longer");
          over -= one.writableLength;
        }
        if (over > MAX) for (const one of left) assert.ok(now - one.movedAt < UNREAD_MICROS_MIN, "should be cut");
        assert.equal(waiting > 0, over > MAX, "who waits for room goes on once there is some");
      }
      assert.equal(cuts, clients.filter(({ isCut }) => isCut).length);
      for (const client of clients) unread.leave(client);
      assert.equal(unread.bytes, 0);
    }),
    { numRuns: 500 },
  );
});
