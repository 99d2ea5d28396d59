import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";

import type { Refusal } from "#live/http/errors.ts";
import { STAYS } from "#live/base/loop-turn.ts";
import { SMALL_PIECES_AT_ONCE, SMALL_PIECES_MAX, readBody } from "#live/http/request-body.ts";

/** A body whose pieces come when they are sent, and what became of it. */
class Sent extends EventEmitter {
  readonly socket = Object.assign(new EventEmitter(), { pause: () => {}, resume: () => {}, destroyed: false });
  outcome: Buffer | Refusal | undefined;

  constructor() {
    super();
    readBody(this as unknown as IncomingMessage, {
      declaredLength: "",
      bytesMax: 2 ** 20,
      hold: () => true,
      done: (outcome) => (this.outcome = outcome),
      asker: STAYS,
    });
  }

  pause(): void {}

  pieces(count: number, bytes = 1): this {
    for (let i = 0; i < count; i++) this.emit("data", Buffer.alloc(bytes, 0x20));
    return this;
  }

  get refused(): string | undefined {
    return this.outcome === undefined || Buffer.isBuffer(this.outcome) ? undefined : this.outcome.reason;
  }
}

const nextPass = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("law: small pieces of all bodies that come in one pass of the event loop are bounded, those of one alone as before", async () => {
  const one = new Sent().pieces(SMALL_PIECES_MAX - 1);
  assert.equal(one.refused, undefined);
  const others = Array.from({ length: 50 }, () => new Sent().pieces(2 * SMALL_PIECES_AT_ONCE));
  assert.ok(others.every(({ refused }) => refused === "saturated"));
  const [few, large] = [new Sent().pieces(SMALL_PIECES_AT_ONCE), new Sent().pieces(2 * SMALL_PIECES_AT_ONCE, 64)];
  assert.deepEqual([few.refused, large.refused], [undefined, undefined]);
  await nextPass();
  const later = new Sent().pieces(SMALL_PIECES_MAX - 1);
  assert.equal(later.refused, undefined);
  await nextPass();
  assert.equal(later.pieces(3).refused, "bad-request");
  one.emit("end");
  assert.ok(Buffer.isBuffer(one.outcome));
  assert.equal(one.outcome.length, SMALL_PIECES_MAX - 1);
});
