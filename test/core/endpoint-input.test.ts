import assert from "node:assert/strict";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { Router } from "#core/router.ts";
import { randomFor } from "#core/base/random.ts";
import { loadProfile } from "#config/profile-file.ts";
import { drawnSeeds } from "../drawn-seeds.ts";
import { chain } from "./state.ts";

const SLOT = 0;
const BLOCKS = 12;

/** A router with one endpoint that reports everything, and its index. */
function reported(): { readonly accept: (input: Input) => void; readonly index: DualIndex } {
  const index = new DualIndex();
  const router = new Router({
    seed: 1,
    profiles: { gnomon: loadProfile("gnomon").spec },
    defaultProfile: "gnomon",
    index,
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  const accept = (input: Input): void => void router.accept(input);
  const endpoint = { id: "a", models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
  accept({ kind: "endpoint-joined", at: 0, endpoint });
  accept({ kind: "kv-events-alive", at: 0, endpoint: "a", isComplete: true });
  return { accept, index };
}

function hitsOf(index: DualIndex, family: number): number {
  const hits = new Int32Array(1);
  index.match(chain(family, BLOCKS), hits, true);
  return hits[0]!;
}

test("blocks of several chains in one report are what they are in a report for each", () => {
  for (const seed of drawnSeeds(30, 100)) {
    const random = randomFor(seed, 1);
    const [together, apart] = [reported(), reported()];
    const families = [1, 2, 3].slice(0, 1 + random.below(3));
    const parts = families.map((family) => chain(family, 1 + random.below(BLOCKS)).hashes);
    const starts = parts.slice(1).map((_, i) => parts.slice(0, i + 1).reduce((sum, { length }) => sum + length / 2, 0));
    const hashes = Int32Array.from(parts.flatMap((part) => [...part]));
    together.accept({ kind: "blocks-stored", at: 1, endpoint: "a", hashes, ...(starts.length > 0 && { starts }) });
    for (const part of parts) apart.accept({ kind: "blocks-stored", at: 1, endpoint: "a", hashes: part });
    const seen = ({ index }: typeof together) => [index.size(SLOT), ...families.map((family) => hitsOf(index, family))];
    assert.deepEqual(seen(together), seen(apart), `seed ${seed}`);
    assert.deepEqual(seen(apart), [hashes.length / 2, ...parts.map(({ length }) => length / 2)], `seed ${seed}`);
    // Each block was stored once, so one removal takes it.
    for (const part of parts) together.accept({ kind: "blocks-removed", at: 2, endpoint: "a", hashes: part });
    assert.deepEqual(seen(together), [0, ...families.map(() => 0)], `seed ${seed}`);
  }
});
