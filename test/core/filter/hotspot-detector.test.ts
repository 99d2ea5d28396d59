import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Filter } from "#core/filter/filter.ts";
import { hotspotDetector } from "#core/filter/hotspot-detector.ts";
import { randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { chain, request, snapshot } from "../state.ts";

const WINDOW = 8;
/** Blocks that make a class, of 16 tokens. */
const CLASS_BLOCKS = 4;

const detector = (): Filter =>
  hotspotDetector.create("hotspot-detector", { prefixTokens: CLASS_BLOCKS * 16, windowRequests: WINDOW });

const asks = (family: number, length = CLASS_BLOCKS): RouteRequest =>
  request({ id: "r", blocks: chain(family, length) });

/** A decision that went where so many tokens were held. */
function decided(filter: Filter, one: RouteRequest, hitTokens: number): void {
  filter.observe?.({ kind: "request-arrived", at: 0, request: one }, { kind: "routed", hitTokens } as Decision, one);
}

/** Which of four endpoints stay, of which the first so many hold the prefix. */
function kept(filter: Filter, one: RouteRequest, holders: number): string {
  const candidates = ["a", "b", "c", "d"].map((id, i) => snapshot({ id, hitBlocks: i < holders ? CLASS_BLOCKS : 0 }));
  const keep = new Uint8Array(candidates.length).fill(1);
  filter.filter(one, candidates, keep, randomFor(1, 1));
  return candidates.flatMap(({ id }, i) => (keep[i] === 1 ? [id] : [])).join("");
}

test("a prefix that draws all requests leaves its holders once its window is full and each had two in a row", () => {
  const filter = detector();
  for (let i = 0; i < WINDOW - 1; i++) decided(filter, asks(1), 64);
  assert.equal(kept(filter, asks(1), 1), "abcd", "the window is not full");
  decided(filter, asks(1), 64);
  assert.equal(kept(filter, asks(1), 1), "bcd");
  assert.equal(kept(filter, asks(1), 2), "cd");
  assert.equal(kept(filter, asks(1), 0), "abcd", "nobody holds it");
  assert.equal(kept(filter, asks(1), 4), "abcd", "all hold it");
});

test("after a decision beside the holders they are left alone until two each in a row went there again", () => {
  const filter = detector();
  for (let i = 0; i < 2 * WINDOW; i++) decided(filter, asks(1), 64);
  decided(filter, asks(1), 0);
  for (let i = 0; i < 4; i++) {
    assert.equal(kept(filter, asks(1), 2), "abcd", `${i} in a row`);
    decided(filter, asks(1), 64);
  }
  assert.equal(kept(filter, asks(1), 2), "cd");
});

test("a share of requests no larger than the share of endpoints that hold the prefix is no hot spot", () => {
  const filter = detector();
  // Every second request of many: a share of a half, which one holder of four is too few for and two are not.
  for (let i = 0; i < 40 * WINDOW; i++) decided(filter, asks(i % 2 === 0 ? 1 : 2 + i), 64);
  assert.equal(kept(filter, asks(1), 1), "bcd");
  assert.equal(kept(filter, asks(1), 3), "abcd");
});

test("the leading tokens alone make the class: what follows them does not part it, another beginning does", () => {
  const filter = detector();
  for (let i = 0; i < 2 * WINDOW; i++) decided(filter, asks(1, CLASS_BLOCKS + (i % 5)), 64);
  for (const length of [CLASS_BLOCKS, CLASS_BLOCKS + 1, CLASS_BLOCKS + 9]) {
    assert.equal(kept(filter, asks(1, length), 1), "bcd", `${length} blocks`);
  }
  assert.equal(kept(filter, asks(2), 1), "abcd", "another class");
  assert.equal(kept(filter, asks(1, CLASS_BLOCKS - 1), 1), "abcd", "a shorter prompt is a class of its own");
});

test("a class that is no longer asked for fades", () => {
  const filter = detector();
  for (let i = 0; i < 2 * WINDOW; i++) decided(filter, asks(1), 64);
  assert.equal(kept(filter, asks(1), 1), "bcd");
  for (let i = 0; i < 4 * WINDOW; i++) decided(filter, asks(10 + i), 0);
  assert.equal(kept(filter, asks(1), 1), "abcd");
});
