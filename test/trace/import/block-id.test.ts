import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { contentBlockIds, namespacedBlockId } from "#trace/import/block-id.ts";

describe("block ids of known content", () => {
  it("are equal exactly as far as the contents are", () => {
    const symbols = fc.array(fc.nat(3), { maxLength: 60 });
    fc.assert(
      fc.property(symbols, symbols, symbols, (head, a, b) => {
        const [one, two] = [
          [...head, ...a],
          [...head, ...b],
        ];
        const [x, y] = [one, two].map((content) => contentBlockIds(content.length, 4, (i) => content[i] ?? 0));
        assert.ok(x && y);
        for (let block = 0; block < Math.max(x.length, y.length); block++) {
          const same = one.slice(0, block * 4 + 4).join() === two.slice(0, block * 4 + 4).join();
          assert.equal(x[block] === y[block], same, `block ${block}`);
        }
      }),
    );
  });

  it("do not collide among a hundred thousand, and are safe integers", () => {
    const ids = contentBlockIds(100_000, 1, (i) => i % 7);
    assert.equal(new Set(ids).size, 100_000);
    assert.ok(ids.every((id) => Number.isSafeInteger(id) && id >= 0));
  });
});

describe("namespaced block ids", () => {
  it("differ when namespace or local id differ", () => {
    const part = fc.tuple(fc.nat(134_217_727), fc.nat(67_108_863));
    fc.assert(
      fc.property(part, part, (a, b) => {
        const same = a[0] === b[0] && a[1] === b[1];
        assert.equal(namespacedBlockId(...a) === namespacedBlockId(...b), same);
        assert.ok(Number.isSafeInteger(namespacedBlockId(...a)));
      }),
    );
  });
});
