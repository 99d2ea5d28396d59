import assert from "node:assert/strict";
import { test } from "node:test";
import { EndpointWindows } from "#core/scorer/endpoint-windows.ts";

test("each endpoint has a sum of its own, of what is not older than the window", () => {
  const windows = new EndpointWindows(2);
  windows.add("a", 1_000_000, 5);
  windows.add("a", 2_500_000, 7);
  windows.add("b", 2_500_000, 11);
  assert.deepEqual(
    ["a", "b", "c"].map((id) => windows.sum(id, 3_000_000)),
    [12, 11, 0],
  );
  assert.deepEqual(
    ["a", "b", "c"].map((id) => windows.sum(id, 3_000_001)),
    [7, 11, 0],
  );
});

test("a forgotten endpoint starts from nothing, and the others keep theirs", () => {
  const windows = new EndpointWindows(10);
  windows.add("a", 0, 5);
  windows.add("b", 0, 6);
  windows.forget("a");
  assert.deepEqual([windows.sum("a", 1), windows.sum("b", 1)], [0, 6]);
});
