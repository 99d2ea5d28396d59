import assert from "node:assert/strict";
import { test } from "node:test";
import type { RouteRequest } from "#core/request/request.ts";
import { conversationsOf } from "#shadow/recorded/conversations.ts";

/** A request whose prompt has these blocks. */
function turn(id: string, blocks: readonly number[], at: number, endAt: number, session = "") {
  const hashes = Int32Array.from(blocks.flatMap((block) => [block, 7 * block]));
  const route: RouteRequest = {
    id,
    model: "m",
    tenant: "",
    session,
    sloClass: "",
    priority: 0,
    promptTokens: 16 * blocks.length,
    promptTokensExact: true,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: { hashes, length: blocks.length, blockTokens: 16 },
    profile: "",
  };
  return { route, at, endAt };
}

const ENDED = [
  turn("a1", [1, 2], 0, 10),
  turn("s1", [9], 1, 5, "s"),
  turn("a2", [1, 2, 3, 4], 20, 30),
  turn("s2", [8], 21, 24, "s"),
  turn("s3", [7], 23, 40, "s"),
  turn("a3", [1, 2, 3, 4, 5], 50, 60),
];

const ids = (kind: "inferred" | "named") =>
  conversationsOf(ENDED, kind).map((turns) => turns.map(({ route }) => route.id));

test("turns wait that clients named, and those whose prompts continue one another", () => {
  assert.deepEqual(ids("inferred"), [["a1", "a2", "a3"], ["s1", "s2"], ["s3"]]);
});

test("of a load generator only those that it named do", () => {
  assert.deepEqual(ids("named"), [["a1"], ["s1", "s2"], ["a2"], ["s3"], ["a3"]]);
});
