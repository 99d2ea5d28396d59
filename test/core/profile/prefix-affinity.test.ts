import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { randomFor } from "#core/base/random.ts";
import { vectorRequest, vectorSnapshots } from "../vector-state.ts";

function picked(blocks: number, endpoints: Parameters<typeof vectorSnapshots>[0]): number {
  const profile = buildProfile("p", loadProfile("prefix-affinity").spec);
  const snapshots = vectorSnapshots(endpoints);
  const ids = snapshots.map(({ id }) => id);
  return profile.choose(vectorRequest({ blocks }), snapshots, ids, new Uint8Array(ids.length), randomFor(1, 0)).index;
}

test("prefix-affinity matches a prompt as a whole or not at all", () => {
  assert.equal(picked(2000, [{ hit: 0 }, { hit: 2000, inFlight: 40 }, { hit: 0 }]), 1, "the holder, however busy");
  assert.equal(
    picked(2000, [{ hit: 1, inFlight: 2 }, { hit: 1999, inFlight: 40 }, { hit: 0 }]),
    2,
    "else the idle one",
  );
  assert.equal(picked(0, [{ inFlight: 1 }, {}]), 1, "and where there is no whole block");
});
