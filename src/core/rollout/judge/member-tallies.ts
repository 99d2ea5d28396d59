import { ArmTally, type SavedTally } from "./arm-tally.ts";
import type { RolloutOutcome } from "./outcome.ts";

/** Tenants and classes that are guarded one by one; those that come after them are watched with all others alone. */
export const MEMBERS_MAX = 48;

/** What a limit may be judged for, one by one. */
export type Membership = "tenant" | "class";

export type SavedMembers = readonly (readonly [string, readonly SavedTally[]])[];

/** What each arm did for every tenant or class, by `tenant NAME` and `class NAME`. */
export class MemberTallies {
  readonly #arms: number;
  readonly #by: ReadonlySet<Membership>;
  readonly #members: Map<string, readonly ArmTally[]>;

  constructor(arms: number, by: ReadonlySet<Membership>, saved: SavedMembers = []) {
    this.#arms = arms;
    this.#by = by;
    this.#members = new Map(saved.map(([name, tallies]) => [name, tallies.map((one) => new ArmTally(one))]));
  }

  add(outcome: RolloutOutcome): void {
    for (const name of this.#namesOf(outcome)) this.#tallies(name)?.[outcome.arm]!.add(outcome);
  }

  /** One that has been added, once it is ranked among those that ended beside it. */
  addRanked(request: Pick<RolloutOutcome, "arm" | "tenant" | "sloClass">, isSlow: boolean): void {
    for (const name of this.#namesOf(request)) this.#members.get(name)?.[request.arm]!.addRanked(isSlow);
  }

  /** Every tenant, or every class. */
  of(each: Membership): [string, readonly ArmTally[]][] {
    return [...this.#members].filter(([name]) => name.startsWith(`${each} `));
  }

  /** Adds what one arm did elsewhere. */
  merge(other: MemberTallies): void {
    for (const [name, tallies] of other.#members) {
      const own = this.#tallies(name);
      if (own !== undefined) tallies.forEach((tally, arm) => own[arm]!.merge(tally));
    }
  }

  saved(): SavedMembers {
    return [...this.#members].map(([name, tallies]) => [name, tallies.map((one) => one.saved())]);
  }

  #namesOf({ tenant = "", sloClass = "" }: Pick<RolloutOutcome, "tenant" | "sloClass">): string[] {
    return [
      ...(tenant !== "" && this.#by.has("tenant") ? [`tenant ${tenant}`] : []),
      ...(sloClass !== "" && this.#by.has("class") ? [`class ${sloClass}`] : []),
    ];
  }

  #tallies(name: string): readonly ArmTally[] | undefined {
    let tallies = this.#members.get(name);
    if (tallies === undefined && this.#members.size < MEMBERS_MAX) {
      tallies = Array.from({ length: this.#arms }, () => new ArmTally());
      this.#members.set(name, tallies);
    }
    return tallies;
  }
}
