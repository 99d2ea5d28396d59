import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlocksStored, RequestArrived } from "#core/input/input.ts";
import { BlocksLearner } from "#live/tap/blocks-learner.ts";
import { chain, request } from "../../core/state.ts";

function arrival(id: string, family: number, blocks: number, promptTokensExact = true): RequestArrived {
  const asked = request({ id, model: "m", blocks: chain(family, blocks), promptTokensExact });
  return { kind: "request-arrived", at: 1, request: asked };
}

function found(learner: BlocksLearner, family: number, blocks: number, more: Partial<BlocksStored> = {}): string[] {
  const { hashes } = chain(family, blocks);
  const all: string[] = [];
  const input: BlocksStored = { kind: "blocks-stored", at: 2, endpoint: "b", hashes, ...more };
  learner.stored(input, (id, endpoint) => all.push(`${id} at ${endpoint}`));
  return all;
}

test("who stores the last block of a prompt had it, once", () => {
  const learner = new BlocksLearner();
  learner.arrived(arrival("1", 7, 3));
  learner.arrived(arrival("2", 7, 5));
  assert.deepEqual(found(learner, 7, 2), []);
  assert.deepEqual(found(learner, 7, 5), ["1 at b", "2 at b"]);
  assert.deepEqual(found(learner, 7, 5), []);
});

test("of two open requests that end alike nothing is learned, until one of them is over", () => {
  const learner = new BlocksLearner();
  for (const id of ["1", "2"]) learner.arrived(arrival(id, 7, 3));
  assert.deepEqual(found(learner, 7, 3), []);
  learner.forget("1");
  assert.deepEqual(found(learner, 7, 3), ["2 at b"]);
});

test("estimated prompts, host memory and requests that are over show nothing", () => {
  const learner = new BlocksLearner();
  learner.arrived(arrival("1", 7, 3, false));
  assert.deepEqual(found(learner, 7, 3), []);
  learner.arrived(arrival("2", 8, 3));
  assert.deepEqual(found(learner, 8, 3, { medium: "host" }), []);
  learner.forget("2");
  assert.deepEqual(found(learner, 8, 3), []);
});
