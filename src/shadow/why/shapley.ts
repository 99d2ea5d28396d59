import type { Random } from "#core/base/random.ts";

/** Players of a game in which some may only come in after others. */
export interface Game {
  readonly players: number;
  /** By player, a bit set of those that must be in before it. */
  readonly after: readonly number[];
}

/** How much of one marginal contribution counts for a player: `value(with) - value(without)`, by weight. */
export interface Marginal {
  readonly player: number;
  readonly without: number;
  readonly with: number;
  readonly weight: number;
}

/** More coalitions are not counted. */
const PLAYERS_MAX = 12;

/**
 * The marginal contributions whose weighted sums are the Shapley values of a game, players in every order in which they
 * may come being equally likely. Weights of each player add up to 1, and all values to `value(all) - value(none)`,
 * whatever the values are.
 */
export function exactMarginals(game: Game): Marginal[] {
  const { players } = game;
  if (players > PLAYERS_MAX) throw new RangeError(`expected at most ${PLAYERS_MAX} players, got ${players}`);
  const all = (1 << players) - 1;
  const orders = new Float64Array(all + 1);
  const rest = new Float64Array(all + 1);
  orders[0] = 1;
  rest[all] = 1;
  for (let set = 0; set <= all; set++)
    for (const player of mayCome(game, set)) orders[set | (1 << player)]! += orders[set]!;
  for (let set = all - 1; set >= 0; set--)
    for (const player of mayCome(game, set)) rest[set]! += rest[set | (1 << player)]!;
  const marginals: Marginal[] = [];
  for (let set = 0; set < all; set++) {
    if (orders[set] === 0) continue;
    for (const player of mayCome(game, set)) {
      const next = set | (1 << player);
      marginals.push({ player, without: set, with: next, weight: (orders[set]! * rest[next]!) / rest[0]! });
    }
  }
  return marginals;
}

/**
 * The same over drawn orders, until as many coalitions as are allowed have come up: unbiased, and exact in the sum, since
 * every order's contributions add up to the whole.
 */
export function sampledMarginals(game: Game, coalitionsMax: number, random: Random): Marginal[] {
  const all = (1 << game.players) - 1;
  const seen = new Set([0, all]);
  const drawn: number[][] = [];
  for (let tries = 0; tries < coalitionsMax; tries++) {
    const order: number[] = [];
    let set = 0;
    const met: number[] = [];
    while (set !== all) {
      const next = mayCome(game, set);
      const player = next[random.below(next.length)]!;
      order.push(player);
      set |= 1 << player;
      met.push(set);
    }
    const more = met.filter((one) => !seen.has(one));
    if (drawn.length > 0 && seen.size + more.length > coalitionsMax) break;
    for (const one of more) seen.add(one);
    drawn.push(order);
  }
  return drawn.flatMap((order) => {
    let set = 0;
    return order.map((player): Marginal => {
      const without = set;
      set |= 1 << player;
      return { player, without, with: set, weight: 1 / drawn.length };
    });
  });
}

/** Coalitions whose values are asked for. */
export function coalitionsOf(game: Game, marginals: readonly Marginal[]): number[] {
  const all = (1 << game.players) - 1;
  const sets = new Set([0, all, ...marginals.flatMap((one) => [one.without, one.with])]);
  return [...sets].sort((a, b) => a - b);
}

/** By player. */
export function shapleyValues(
  players: number,
  marginals: readonly Marginal[],
  value: (set: number) => number,
): number[] {
  const values = Array.from({ length: players }, () => 0);
  for (const one of marginals) values[one.player]! += one.weight * (value(one.with) - value(one.without));
  return values;
}

function mayCome({ players, after }: Game, set: number): number[] {
  return Array.from({ length: players }, (_, player) => player).filter(
    (player) => (set & (1 << player)) === 0 && (after[player]! & ~set) === 0,
  );
}
