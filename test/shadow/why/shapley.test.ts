import "../../property-seed.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { randomFor } from "#core/base/random.ts";
import { coalitionsOf, exactMarginals, type Game, sampledMarginals, shapleyValues } from "#shadow/why/shapley.ts";

const FREE = (players: number): Game => ({ players, after: Array.from({ length: players }, () => 0) });

/** Player i may need players below it. */
const GAME: fc.Arbitrary<Game> = fc
  .integer({ min: 0, max: 6 })
  .chain((players) => fc.tuple(...Array.from({ length: players }, (_, i) => fc.nat({ max: (1 << i) - 1 }))))
  .map((after) => ({ players: after.length, after }));

/** Every order in which the players may come. */
function ordersOf({ players, after }: Game, set = 0): number[][] {
  if (set === (1 << players) - 1) return [[]];
  return Array.from({ length: players }, (_, p) => p)
    .filter((p) => (set & (1 << p)) === 0 && (after[p]! & ~set) === 0)
    .flatMap((p) => ordersOf({ players, after }, set | (1 << p)).map((rest) => [p, ...rest]));
}

const valueOf = (values: readonly number[]) => (set: number) => values[set % values.length]! * (set === 0 ? 0 : 1);
const VALUES = fc.array(fc.integer({ min: -1_000, max: 1_000 }), { minLength: 64, maxLength: 64 });
const near = (a: number, b: number) => assert.ok(Math.abs(a - b) < 1e-6, `${a} and ${b}`);

test("shares are the mean contribution over every order that may be, and add up to the whole", () => {
  fc.assert(
    fc.property(GAME, VALUES, (game, values) => {
      const value = valueOf(values);
      const shares = shapleyValues(game.players, exactMarginals(game), value);
      const orders = ordersOf(game);
      for (let player = 0; player < game.players; player++) {
        let sum = 0;
        for (const order of orders) {
          const before = order.slice(0, order.indexOf(player)).reduce((set, one) => set | (1 << one), 0);
          sum += value(before | (1 << player)) - value(before);
        }
        near(shares[player]!, sum / orders.length);
      }
      near(
        shares.reduce((sum, one) => sum + one, 0),
        value((1 << game.players) - 1) - value(0),
      );
    }),
  );
});

test("drawn orders add up to the whole too, within the coalitions that are allowed", () => {
  fc.assert(
    fc.property(GAME, VALUES, fc.integer({ min: 8, max: 20 }), fc.nat(), (game, values, most, seed) => {
      const marginals = sampledMarginals(game, most, randomFor(seed, 1));
      assert.ok(coalitionsOf(game, marginals).length <= most);
      const shares = shapleyValues(game.players, marginals, valueOf(values));
      near(
        shares.reduce((sum, one) => sum + one, 0),
        valueOf(values)((1 << game.players) - 1),
      );
    }),
  );
});

test("two that do the same share it, one that does nothing has nothing", () => {
  const value = (set: number) => ((set & 0b11) !== 0 ? 10 : 0);
  assert.deepEqual(shapleyValues(3, exactMarginals(FREE(3)), value).map(Math.round), [5, 5, 0]);
});

test("more players than are counted are refused", () => {
  assert.throws(() => exactMarginals(FREE(13)), /expected at most 12 players, got 13/);
});
