/**
 * How far a policy explains decisions that somebody else made, each by the chances that it gave to the endpoints. A policy
 * that leaves nothing to chance gives 1 to one of them.
 *
 * `gain` is the rise of the mean quadratic score (Brier's, which nothing but the true chances maximises) over that of
 * chance alone, of the policy mixed with chance as well as it can be: p = a * policy + (1 - a) / endpoints. It is 0 for
 * chance itself and (1 - 1 / endpoints) for a policy that names every choice, so that policies with and without chance
 * can be ranked together.
 */
export class ExplainedShare {
  decisions = 0;
  /** Sum of the chances of what was chosen. */
  #chosen = 0;
  /** Sum of the chances of what the policy itself would choose: of the squares of all its chances. */
  #own = 0;
  /** Sum of the chances that each endpoint has by chance alone. */
  #blind = 0;
  /** Decisions for something that the policy holds for possible. */
  #possible = 0;

  /** A decision among so many, of which the chosen one had the chance `chosen`, and all of them such squares. */
  add(among: number, chosen: number, squares: number): void {
    this.decisions++;
    this.#chosen += chosen;
    this.#own += squares;
    this.#blind += 1 / among;
    if (chosen > 0) this.#possible++;
  }

  /** Share of the decisions that the policy makes alike, a choice that it leaves to chance counted by its chance. */
  get share(): number {
    return ratio(this.#chosen, this.decisions);
  }

  /** What `share` would be of a router that decides by this policy: 1 where nothing is left to chance. */
  get own(): number {
    return ratio(this.#own, this.decisions);
  }

  /** The share of one that draws. */
  get blind(): number {
    return ratio(this.#blind, this.decisions);
  }

  /** Share of the decisions for an endpoint that the policy might have chosen. */
  get possible(): number {
    return ratio(this.#possible, this.decisions);
  }

  get gain(): number {
    const above = this.#chosen - this.#blind;
    const most = this.#own - this.#blind;
    if (this.decisions === 0 || above <= 0 || most <= 1e-9 * this.decisions) return 0;
    return (above >= most ? 2 * above - most : (above * above) / most) / this.decisions;
  }
}

function ratio(sum: number, count: number): number {
  return count === 0 ? 0 : sum / count;
}
