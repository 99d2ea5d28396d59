import { nameHash, randomFor, type Random } from "#core/base/random.ts";
import { type InjectedFault, NO_FAULTS, parseFaults, sortFaults, type FaultSet } from "./fault.ts";

/** A standing order: which requests are to fail, how, and how often. */
export interface FaultRule {
  /** In the syntax of the request header. */
  readonly fault: string;
  /** Exact path; undefined for every inference route. */
  readonly path: string | undefined;
  /** Requests that it still hits; undefined for no end. */
  readonly count: number | undefined;
  /** In (0, 1]. */
  readonly probability: number;
}

export interface RuleState extends FaultRule {
  readonly hits: number;
}

interface Entry {
  readonly rule: FaultRule;
  readonly faults: readonly InjectedFault[];
  remaining: number;
  hits: number;
}

/** Standing orders kept at once. */
export const FAULT_RULES_MAX = 64;

/** The faults ordered by the admin interface. Draws are seeded, so that a run can be repeated. */
export class FaultPlan {
  readonly #entries: Entry[] = [];
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = randomFor(seed, nameHash("fault"));
  }

  /** Throws FaultSyntaxError. False when there is no room for another rule. */
  add(rule: FaultRule): boolean {
    const faults = parseFaults(rule.fault);
    if (this.#entries.length >= FAULT_RULES_MAX) return false;
    this.#entries.push({ rule, faults, remaining: rule.count ?? Number.POSITIVE_INFINITY, hits: 0 });
    return true;
  }

  clear(): void {
    this.#entries.length = 0;
  }

  list(): readonly RuleState[] {
    return this.#entries.map(({ rule, remaining, hits }) => ({
      ...rule,
      count: Number.isFinite(remaining) ? remaining : undefined,
      hits,
    }));
  }

  /** The first rule that matches and whose draw succeeds decides. */
  draw(path: string, inference: boolean): FaultSet {
    if (this.#entries.length === 0) return NO_FAULTS;
    for (const entry of this.#entries) {
      const { path: wanted, probability } = entry.rule;
      if (wanted === undefined ? !inference : wanted !== path) continue;
      if (entry.remaining <= 0 || this.#random.next() >= probability) continue;
      entry.remaining--;
      entry.hits++;
      return sortFaults(entry.faults);
    }
    return NO_FAULTS;
  }
}
