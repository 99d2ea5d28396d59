import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { randomFor } from "#core/base/random.ts";
import { SessionInference } from "#core/session/session-inference.ts";
import { chain, request } from "../state.ts";

/** The rule as it is said, over plain lists: the longest known prompt that this one starts with. */
class Plain {
  readonly #known: { key: string; session: string }[] = [];
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  sessionOf(blocks: BlockChain): string {
    if (blocks.length === 0) return "";
    const keys = Array.from(
      { length: blocks.length },
      (_, i) => `${blocks.hashes[2 * i]},${blocks.hashes[2 * i + 1]! >>> 11}`,
    );
    const found = keys.toReversed().flatMap((key) => this.#known.filter((one) => one.key === key))[0];
    const session = found?.session ?? `~${nameOf(blocks)}`;
    const last = keys.at(-1)!;
    const at = this.#known.findIndex(({ key }) => key === last);
    if (at >= 0) this.#known.splice(at, 1);
    this.#known.push({ key: last, session });
    if (this.#known.length > this.#max) this.#known.splice(0, this.#known.length - this.#max + (this.#max >> 3));
    return session;
  }
}

/** An inferred session's name is its first prompt's end: 32 bits of the one word, and 21 of the other. */
function nameOf({ hashes, length }: BlockChain): string {
  return ((hashes[2 * length - 2]! >>> 0) * 2 ** 21 + (hashes[2 * length - 1]! >>> 11)).toString(36);
}

test("a turn continues the conversation of the longest known prompt that it starts with, also when others are forgotten", () => {
  const seed = 5;
  const random = randomFor(seed, 1);
  const inference = new SessionInference(64);
  const plain = new Plain(64);
  for (let step = 0; step < 6_000; step++) {
    const blocks = chain(random.below(120), random.below(12));
    const got = inference.sessionOf(request({ id: `r${step}`, blocks }));
    assert.equal(got, plain.sessionOf(blocks), `seed ${seed}, step ${step}`);
  }
});

test("a named session stays as it is named, and a shared system prompt joins nobody", () => {
  const inference = new SessionInference();
  const system = chain(1, 4);
  const turn = (tail: number): BlockChain => {
    const hashes = new Int32Array(12);
    hashes.set(system.hashes);
    hashes.set(chain(tail, 2).hashes, 8);
    return { hashes, length: 6, blockTokens: 16 };
  };
  assert.equal(inference.sessionOf(request({ id: "a", session: "mine", blocks: turn(7) })), "mine");
  assert.notEqual(
    inference.sessionOf(request({ id: "b", blocks: turn(8) })),
    inference.sessionOf(request({ id: "c", blocks: turn(9) })),
  );
  assert.equal(inference.sessionOf(request({ id: "d", blocks: chain(1, 0) })), "");
});

test("what was remembered goes on in another one: turns join the conversations that they had", () => {
  const keys: number[] = [];
  const inference = new SessionInference(64, (prompt, conversation) => keys.push(prompt, conversation));
  const named = Array.from({ length: 20 }, (_, i) =>
    inference.sessionOf(request({ id: `a${i}`, blocks: chain(i, 3) })),
  );
  inference.sessionOf(request({ id: "named", session: "mine", blocks: chain(99, 3) }));
  assert.equal(keys.length, 40);
  const again = new SessionInference(64);
  again.restore(keys);
  const fresh = new SessionInference(64);
  named.forEach((session, i) => {
    const turn = request({ id: `b${i}`, blocks: chain(i, 7) });
    assert.equal(again.sessionOf(turn), session);
    assert.notEqual(fresh.sessionOf(turn), session);
  });
});
