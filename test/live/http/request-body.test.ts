import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { test } from "node:test";

import { STAYS } from "#live/base/loop-turn.ts";
import type { Refusal } from "#live/http/errors.ts";
import { readBody } from "#live/http/request-body.ts";

const PIECE_BYTES = 65_536;

/** A request whose body comes in pieces with memory of their own, and who reads it. */
function arriving(hold: (bytes: number) => boolean = () => true) {
  const socket = Object.assign(new EventEmitter(), { pause: () => {}, resume: () => {}, destroyed: false });
  const incoming = Object.assign(new EventEmitter(), { socket, pause: () => {} });
  const came: (Buffer | Refusal)[] = [];
  readBody(incoming as unknown as IncomingMessage, {
    asker: STAYS,
    declaredLength: "",
    bytesMax: 100 * PIECE_BYTES,
    hold,
    done: (body) => void came.push(body),
  });
  const pieces: Buffer[] = [];
  const send = (count: number): void => {
    for (let i = 0; i < count; i++) {
      const piece = Buffer.allocUnsafeSlow(PIECE_BYTES).fill(pieces.length + 1);
      pieces.push(piece);
      incoming.emit("data", piece);
    }
  };
  const held = (): number => pieces.reduce((sum, piece) => sum + piece.length, 0);
  return { socket, incoming, came, send, held };
}

test("the memory of a body's pieces is given back once it is one body", () => {
  const { socket, incoming, came, send, held } = arriving();
  send(10);
  incoming.emit("end");
  const [body] = came as Buffer[];
  assert.deepEqual([body!.length, body![0], body!.at(-1)], [10 * PIECE_BYTES, 1, 10]);
  assert.equal(held(), 0);
  assert.equal(socket.listenerCount("close"), 0);
});

test("the memory of a body's pieces is given back as its client leaves", () => {
  const { socket, came, send, held } = arriving();
  send(10);
  assert.equal(held(), 10 * PIECE_BYTES);
  socket.emit("close");
  assert.equal(held(), 0);
  assert.deepEqual(came, []);
});

test("the memory of a body's pieces is given back as it is refused", () => {
  let left = 10;
  const { came, send, held } = arriving(() => left-- > 0);
  send(11);
  assert.equal(came.length, 1);
  // What was not kept is whoever sent it's.
  assert.equal(held(), PIECE_BYTES);
});

test("a body in one piece is that piece", () => {
  const { incoming, came, send, held } = arriving();
  send(1);
  incoming.emit("end");
  assert.equal((came[0] as Buffer).length, PIECE_BYTES);
  assert.equal(held(), PIECE_BYTES);
});
