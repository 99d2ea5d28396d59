import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "./state.ts";

const CAPACITY_TOKENS = 1_600;

function router(...ids: readonly string[]): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: loadProfile("prefix-affinity").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of ids) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: CAPACITY_TOKENS, concurrencyMax: 8 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

function hits(made: Router, id: string, more: Partial<RouteRequest>): number {
  const decision = made.accept({ kind: "request-arrived", at: 1, request: request({ id, ...more }) });
  return decision.kind === "routed" ? decision.hitTokens : assert.fail(decision.reason);
}

function finish(requestId: string, more: Partial<Extract<Input, { kind: "request-finished" }>> = {}): Input {
  const counts = { promptTokens: 67, cachedTokens: 0, outputTokens: 60 };
  return { kind: "request-finished", at: 2, requestId, outcome: "ok", ...counts, ...more };
}

const WHOLE = chain(1, 12);
const leading = (length: number): BlockChain => ({ ...WHOLE, hashes: WHOLE.hashes.slice(0, 2 * length), length });
const ANSWER = WHOLE.hashes.slice(8, 14);

test("a conversation's next turn finds the blocks of the last answer, where its tokens were known", () => {
  for (const [answerHashes, expected] of [
    [undefined, 4 * 16],
    [ANSWER, 7 * 16],
  ] as const) {
    const made = router("a");
    hits(made, "first", { blocks: leading(4) });
    made.accept({ kind: "first-token", at: 2, requestId: "first" });
    made.accept(finish("first", answerHashes && { answerHashes }));
    assert.equal(hits(made, "next", { blocks: WHOLE }), expected);
  }
});

test("what a client that left had been sent is in the cache too", () => {
  const made = router("a");
  hits(made, "first", { blocks: leading(4) });
  made.accept({ kind: "first-token", at: 2, requestId: "first" });
  made.accept(finish("first", { outcome: "aborted", answerHashes: ANSWER }));
  assert.equal(hits(made, "next", { blocks: WHOLE }), 7 * 16);
});

test("an answer of an endpoint that has left is not put down to the one that has its place", () => {
  const made = router("a");
  hits(made, "first", { blocks: leading(4) });
  made.accept({ kind: "endpoint-left", at: 1, endpoint: "a" });
  const endpoint = { id: "b", models: [], labels: {}, kvCapacityTokens: CAPACITY_TOKENS, concurrencyMax: 8 };
  made.accept({ kind: "endpoint-joined", at: 1, endpoint });
  made.accept(finish("first", { answerHashes: ANSWER }));
  assert.equal(hits(made, "next", { blocks: WHOLE }), 0);
});

test("an answer that becomes known after its request's end is found all the same", () => {
  const made = router("a");
  hits(made, "first", { blocks: leading(4) });
  made.accept(finish("first", { answerFollows: true }));
  assert.equal(hits(made, "meanwhile", { blocks: WHOLE, cacheRead: false }), 0);
  made.accept(finish("meanwhile", { outcome: "failed" }));
  made.accept({ kind: "answer-known", at: 3, requestId: "first", answerHashes: ANSWER });
  assert.equal(hits(made, "next", { blocks: WHOLE }), 7 * 16);
  assert.equal(made.strayInputs, 0);
});

test("an answer that follows counts once, only where it was announced, and may come to nothing", () => {
  const made = router("a");
  for (const id of ["silent", "announced", "nothing"]) {
    hits(made, id, { blocks: leading(4) });
    made.accept(finish(id, id === "silent" ? {} : { answerFollows: true }));
  }
  made.accept({ kind: "answer-known", at: 3, requestId: "silent", answerHashes: ANSWER });
  made.accept({ kind: "answer-known", at: 3, requestId: "nothing" });
  assert.equal(made.strayInputs, 1);
  assert.equal(made.endpointRows(3)[0]!.indexBlocks, 4);
  made.accept({ kind: "answer-known", at: 3, requestId: "announced", answerHashes: ANSWER });
  assert.equal(made.endpointRows(3)[0]!.indexBlocks, 7);
  made.accept({ kind: "answer-known", at: 3, requestId: "announced", answerHashes: ANSWER });
  assert.equal(made.strayInputs, 2);
});

test("answers that follow are not put down to an endpoint that came meanwhile, nor to blocks of another size", () => {
  const made = router("a");
  for (const id of ["left", "resized"]) {
    const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: CAPACITY_TOKENS, concurrencyMax: 8 };
    hits(made, id, { blocks: leading(4) });
    made.accept(finish(id, { answerFollows: true }));
    if (id === "resized") made.accept({ kind: "block-size-changed", at: 2, blockTokens: 64 });
    else {
      made.accept({ kind: "endpoint-left", at: 2, endpoint: "a" });
      made.accept({ kind: "endpoint-joined", at: 2, endpoint });
    }
    made.accept({ kind: "answer-known", at: 3, requestId: id, answerHashes: ANSWER });
    assert.equal(made.endpointRows(3)[0]!.indexBlocks, 0, id);
  }
});

test("of answers that never follow, the router keeps the latest alone", () => {
  const made = router("a");
  const ids = Array.from({ length: 1_500 }, (_, i) => `r${i}`);
  for (const id of ids) {
    hits(made, id, { blocks: leading(4) });
    made.accept(finish(id, { answerFollows: true }));
  }
  for (const requestId of [ids[0]!, ids.at(-1)!]) made.accept({ kind: "answer-known", at: 3, requestId });
  assert.equal(made.strayInputs, 1);
});

test("a request whose engine does not read its cache expects nothing there, and fills it all the same", () => {
  const made = router("a");
  hits(made, "first", { blocks: leading(4) });
  assert.equal(hits(made, "scored", { blocks: leading(8), cacheRead: false }), 0);
  assert.equal(hits(made, "next", { blocks: WHOLE }), 8 * 16);
});

test("blocks of another size: the index starts afresh, with room for as many of them as fit", () => {
  const made = router("a");
  hits(made, "first", { blocks: WHOLE });
  made.accept({ kind: "block-size-changed", at: 2, blockTokens: 64 });
  assert.equal(made.endpointRows(2)[0]!.indexBlocks, 0);
  const long = chain(9, 40, 64);
  assert.equal(hits(made, "long", { blocks: long }), 0);
  assert.equal(made.endpointRows(2)[0]!.indexBlocks, CAPACITY_TOKENS / 64);
  assert.equal(hits(made, "again", { blocks: long }), (CAPACITY_TOKENS / 64) * 64);
  // The first request's end takes nothing back from the index that it is no longer in.
  made.accept(finish("first", { outcome: "failed" }));
  assert.equal(hits(made, "once more", { blocks: long }), (CAPACITY_TOKENS / 64) * 64);
});
