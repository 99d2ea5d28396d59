import { ConfigError } from "#config/config-error.ts";
import { FIRST_POLICY_VERSION } from "#core/plugin/spec.ts";
import type { PolicyHistory, PolicyOutcome, PolicyView, RefusedChange } from "#live/admin/policy-admin.ts";
import { changedKeys } from "./changed-keys.ts";
import type { Policy } from "./policy.ts";
import type { OfferPolicy, PolicyProposal } from "./policy-source.ts";

export interface Remembered extends Omit<PolicyView, "document" | "defaultProfile" | "profiles"> {
  readonly policy: Policy;
}

/** A change that is to happen now. */
export interface PolicyChange {
  readonly policy: Policy;
  readonly version: number;
  readonly source: string;
}

/** Policies of a gateway before it started again. */
export interface PolicyPast {
  /** Oldest first, at least one; the last one is in force. */
  readonly versions: readonly Remembered[];
  readonly forgotten: number;
}

export interface PolicyKeeperOptions {
  /** What the configuration has. */
  readonly start: Policy;
  /** What was in force before, whose numbers go on; absent where nothing was kept. */
  readonly past?: PolicyPast | undefined;
  /** What stands in the way of a policy that is well by itself, each with its path. */
  readonly objections?: (asked: Policy, inForce: Policy) => readonly string[];
  /** Whatever stands in the way of a policy gives way to it: what became of each, a line each. */
  readonly giveWay?: (asked: Policy, inForce: Policy, by: string) => readonly string[];
  /** Notified after a change, for what survives a restart. */
  readonly changed?: () => void;
  /** Versions that are remembered, that in force among them. */
  readonly historyMax: number;
  /** Puts the policy into force; synchronous. */
  readonly apply: (change: PolicyChange) => void;
  /** Notified of every change that was made or refused, for the log. */
  readonly report: (proposal: Pick<PolicyProposal, "source" | "by" | "note">, outcome: PolicyOutcome) => void;
  readonly now?: () => Date;
}

/** Refused changes that are shown; beyond them the oldest is let go. */
const REFUSED_KEPT_MAX = 32;
const TEXT_CHARS_MAX = 256;

/**
 * Numbers policies, remembers them, and is the only one who puts one into force. A proposal is read and checked whole
 * before anything changes; one that is refused changes nothing.
 */
export class PolicyKeeper {
  readonly #options: PolicyKeeperOptions;
  readonly #now: () => Date;
  /** Oldest first; the last one is in force. */
  readonly #versions: Remembered[];
  readonly #refused: RefusedChange[] = [];
  readonly #counts = new Map<string, { readonly source: string; readonly outcome: string; count: number }>();
  #configured: Policy;
  /** What sources that hold a policy held last. */
  readonly #held = new Map<string, Policy>();
  #forgotten = 0;

  constructor(options: PolicyKeeperOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => new Date());
    this.#configured = options.start;
    const { past } = options;
    const start = { version: FIRST_POLICY_VERSION, source: "start", by: "", note: "" };
    this.#versions =
      past === undefined ? [{ ...start, at: this.#now().toISOString(), policy: options.start }] : [...past.versions];
    this.#forgotten = past?.forgotten ?? 0;
  }

  /** What is in force, with its number. */
  get latest(): Remembered {
    return this.#last;
  }

  get inForce(): Policy {
    return this.#last.policy;
  }

  get version(): number {
    return this.#last.version;
  }

  readonly offer: OfferPolicy = (proposal) => {
    const outcome = this.#offered(proposal);
    this.#count(proposal.source, outcome.outcome);
    if (outcome.outcome === "refused") this.#keepRefused(proposal, outcome.problems);
    if (outcome.outcome === "applied" || outcome.outcome === "refused") this.#options.report(proposal, outcome);
    return outcome;
  };

  /**
   * What other replicas have in force, under their number. Versions from that number on, which were changed here
   * meanwhile, are no versions any more.
   */
  adopt(version: Remembered): void {
    const { policy: inForce } = this.#last;
    const { policy, source, by } = version;
    const isChange = policy.text !== inForce.text;
    const isInTheWay =
      isChange && source !== "rollout" && (this.#options.objections?.(policy, inForce) ?? []).length > 0;
    if (isInTheWay) this.#options.giveWay?.(policy, inForce, by);
    const known = this.#versions.findIndex((one) => one.version >= version.version);
    if (known >= 0) this.#versions.splice(known);
    this.#put(version);
    if (isChange)
      this.#options.report(version, {
        outcome: "applied",
        version: version.version,
        changes: changedKeys(inForce.document, policy.document),
      });
  }

  counts() {
    return [...this.#counts.values()];
  }

  view(version: number = this.version): PolicyView | undefined {
    const found = this.#versions.find((one) => one.version === version);
    return found === undefined ? undefined : { ...headOf(found), document: found.policy.document };
  }

  history(): PolicyHistory {
    return {
      versions: this.#versions.map(headOf).toReversed(),
      forgotten: this.#forgotten,
      refused: this.#refused.toReversed(),
    };
  }

  get #last(): Remembered {
    return this.#versions.at(-1)!;
  }

  /** What a restart has to know. */
  get past(): PolicyPast & { readonly configured: Policy } {
    return { versions: this.#versions, forgotten: this.#forgotten, configured: this.#configured };
  }

  #offered(proposal: PolicyProposal): PolicyOutcome {
    const { version, policy: inForce } = this.#last;
    const { ifVersion } = proposal;
    if (ifVersion !== undefined && ifVersion !== version) {
      return { outcome: "refused", version, problems: [`version: expected ${ifVersion} in force, got ${version}`] };
    }
    let asked: Policy;
    let policy: Policy;
    try {
      asked = proposal.read({
        inForce,
        configured: this.#configured,
        remembered: (asked) => this.#versions.find((one) => one.version === asked)?.policy,
      });
      const before = this.#held.get(proposal.source) ?? this.#configured;
      policy = proposal.over?.(inForce, before, asked) ?? asked;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return { outcome: "refused", version, problems: error.lines };
    }
    // A promotion is what its rollout is for.
    const problems = proposal.source === "rollout" ? [] : (this.#options.objections?.(policy, inForce) ?? []);
    if (problems.length > 0 && proposal.force !== true) return { outcome: "refused", version, problems };
    const changes = changedKeys(inForce.document, policy.document);
    if (proposal.dryRun === true) return { outcome: "checked", version, changes };
    if (proposal.over !== undefined) this.#holds(proposal.source, asked);
    if (changes.length === 0) return { outcome: "unchanged", version };
    const gaveWay = problems.length > 0 ? (this.#options.giveWay?.(policy, inForce, proposal.by) ?? []) : [];
    const applied = { outcome: "applied", version: this.#apply(proposal, policy), changes } as const;
    return gaveWay.length > 0 ? { ...applied, gaveWay } : applied;
  }

  #holds(source: string, policy: Policy): void {
    this.#held.set(source, policy);
    if (source !== FILE_SOURCE) return;
    this.#configured = policy;
    this.#options.changed?.();
  }

  #apply({ source, by, note }: PolicyProposal, policy: Policy): number {
    const version = this.version + 1;
    const at = this.#now().toISOString();
    this.#put({ version, at, source, by: by.slice(0, TEXT_CHARS_MAX), note, policy });
    return version;
  }

  #put(version: Remembered): void {
    const { policy, version: number, source } = version;
    this.#options.apply({ policy, version: number, source });
    this.#versions.push(version);
    if (this.#versions.length > this.#options.historyMax) {
      this.#versions.shift();
      this.#forgotten++;
    }
    this.#options.changed?.();
  }

  #keepRefused({ source, by }: PolicyProposal, problems: readonly string[]): void {
    this.#refused.push({ at: this.#now().toISOString(), source, by: by.slice(0, TEXT_CHARS_MAX), problems });
    if (this.#refused.length > REFUSED_KEPT_MAX) this.#refused.shift();
  }

  #count(source: string, outcome: string): void {
    const key = `${source} ${outcome}`;
    const row = this.#counts.get(key);
    if (row === undefined) this.#counts.set(key, { source, outcome, count: 1 });
    else row.count++;
  }
}

/** The source whose policies are the gateway's configuration, which later documents are laid over. */
export const FILE_SOURCE = "file";

function headOf({ policy, ...head }: Remembered) {
  const profiles = Object.keys(policy.document.profiles).sort();
  return { ...head, defaultProfile: policy.profile.name, profiles };
}
