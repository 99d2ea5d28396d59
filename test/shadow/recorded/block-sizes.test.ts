import assert from "node:assert/strict";
import { test } from "node:test";
import type { RequestFinished } from "#core/input/input.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { BlockSizes } from "#shadow/recorded/block-sizes.ts";

/** A prompt of so many blocks, each recorded as `blockTokens`, that an engine counted as `counted`. */
function ended(blocks: number, blockTokens: number, counted: number | undefined, more: Partial<RouteRequest> = {}) {
  const hashes = new Int32Array(2 * Math.floor(blocks));
  const route: RouteRequest = {
    id: "r",
    model: "m",
    tenant: "",
    session: "",
    sloClass: "",
    priority: 0,
    promptTokens: blocks * blockTokens,
    promptTokensExact: false,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: { hashes, length: Math.floor(blocks), blockTokens },
    profile: "",
    ...more,
  };
  const end: RequestFinished = {
    kind: "request-finished",
    at: 1,
    requestId: "r",
    outcome: "ok",
    promptTokens: counted,
    cachedTokens: 0,
    outputTokens: 1,
  };
  return { route, end };
}

test("blocks cut from text are of one size, that which follows from the engines' counts", () => {
  const run = [ended(100, 16, 1_450), ended(50, 14.5, 700), ended(10, 13.9, undefined), ended(50, 14.1, 710)];
  const sizes = new BlockSizes(run);
  for (const { route } of run) assert.equal(sizes.tokensOf(route), 2_860 / 200);
});

test("a size next to a whole number of tokens is that number", () => {
  const run = [ended(100, 15.998, 1_599), ended(50, 16, 801)];
  assert.equal(new BlockSizes(run).tokensOf(run[0]!.route), 16);
  const other = [ended(100, 16, 1_585)];
  assert.equal(new BlockSizes(other).tokensOf(other[0]!.route), 15.85);
});

test("each model has its own; exact blocks stay as they are, and so do those of a model without counts", () => {
  const exact = ended(100, 16, 1_400, { promptTokensExact: true });
  const other = ended(100, 16, 1_200, { model: "other" });
  const silent = ended(100, 15.3, undefined, { model: "silent" });
  const sizes = new BlockSizes([exact, ended(100, 16, 1_400), other, silent]);
  assert.equal(sizes.tokensOf(exact.route), 16);
  assert.equal(sizes.tokensOf(ended(1, 16, 16).route), 14);
  assert.equal(sizes.tokensOf(other.route), 12);
  assert.equal(sizes.tokensOf(silent.route), 15.3);
});
