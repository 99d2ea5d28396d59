import type { FaultEvent } from "#live/log/fault-log.ts";
import type { Config } from "#config/schema.ts";
import { ConfigError } from "#config/config-error.ts";
import type { PolicyDocument } from "#config/policy-document.ts";
import { FIRST_POLICY_VERSION } from "#core/plugin/spec.ts";
import { Rounds } from "../state/rounds.ts";
import { byThen } from "../state/unkept.ts";
import type { SharedStore } from "../state/shared-store.ts";
import { type Policy, policyOver } from "./policy.ts";
import type { PolicyKeeper, Remembered } from "./policy-keeper.ts";
import { documentPolicy, type SharedPolicy, sharedPolicy, sharedPolicyText } from "./saved-policies.ts";

export interface PolicyShareOptions {
  readonly store: SharedStore;
  readonly keeper: PolicyKeeper;
  readonly running: Config;
  readonly report: (event: FaultEvent) => void;
}

const KEY = "policy-in-force";
/** Others that write at the same time may be quicker so often. */
const TRIES_MAX = 8;
/** Between two looks. */
const LOOK_MILLIS = 1_000;

/**
 * One policy for all replicas of a gateway, under one number: what is changed at one of them, by whatever source, is in
 * force at all. Of two changes at the same time the one that the store had first keeps its number, and what the other
 * one changed is laid over it under the next. Who starts takes what the others have, and lays over it what its
 * configuration has changed since theirs. Without the store each goes on by itself.
 */
export class PolicyShare {
  readonly #options: PolicyShareOptions;
  readonly #rounds: Rounds;
  /** What the store had last, and what was in force here when both were the same, or that could not be had here. */
  #seen = "";
  #isNewcomer = true;
  #base: Remembered;
  /** What the gateway began with: a configuration, or what it kept. */
  readonly #start: Remembered;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PolicyShareOptions) {
    this.#options = options;
    this.#start = this.#base = options.keeper.latest;
    const { report } = options;
    this.#rounds = new Rounds({
      round: () => this.#once(),
      failed: (detail) => report({ kind: "state-failed", detail, done: "this replica changes its policy by itself" }),
      recovered: () => report({ kind: "state-written", detail: "policies are shared again", done: "one is for all" }),
    });
  }

  start(): void {
    this.#timer ??= setInterval(() => void this.sync(), LOOK_MILLIS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Never rejects. Resolves with "" when what was in force here at the call is known to all, else with what is wrong. */
  sync(): Promise<string> {
    return this.#rounds.sync();
  }

  /** As `sync`, within a moment. */
  soon(): Promise<string> {
    return byThen(this.sync(), "what is shared did not answer in time");
  }

  async #once(): Promise<void> {
    const { store, keeper } = this.#options;
    for (let i = 0; i < TRIES_MAX; i++) {
      const there = await store.read(KEY);
      if (there !== undefined && there.text !== this.#seen) {
        this.#take(sharedPolicy(there.text));
        this.#seen = there.text;
      }
      this.#isNewcomer = false;
      const here = keeper.latest;
      const isFirst = there === undefined && here.version === FIRST_POLICY_VERSION;
      if (isFirst || (there !== undefined && isSame(here, this.#base))) return;
      const text = this.#text(here);
      if ((await store.replace(KEY, there?.revision ?? 0, text)) === undefined) continue;
      this.#seen = text;
      this.#base = here;
      return;
    }
    throw new Error("others wrote at the same time again and again");
  }

  #text({ policy, ...head }: Remembered): string {
    const { configured } = this.#options.keeper.past;
    return sharedPolicyText({ ...head, document: policy.document, configured: configured.text });
  }

  /** What others put into force; what was changed here meanwhile is laid over it. */
  #take({ document, configured, ...head }: SharedPolicy): void {
    const { keeper, running, report } = this.#options;
    const here = keeper.latest;
    try {
      const policy = documentPolicy(document, keeper.past.configured, running);
      const mine = this.#ownChange(here, policy, configured);
      keeper.adopt({ ...head, policy });
      this.#base = keeper.latest;
      if (mine === undefined) return;
      const { source, by } = here === this.#start ? { source: "start", by: "" } : here;
      keeper.offer({ source, by, note: "beside another replica's change", force: true, read: () => mine });
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      this.#base = here;
      const detail = `version ${head.version} of another replica: ${error.lines.join("; ")}`;
      report({ kind: "policy-refused", detail, done: `nothing was changed; version ${here.version} stays` });
    }
  }

  /** The policy of the others with what was changed here alone; undefined where that is nothing. */
  #ownChange(here: Remembered, there: Policy, configured: string): Policy | undefined {
    const { keeper, running } = this.#options;
    const own = keeper.past.configured;
    // What both have changed since they were the same; of who starts, since its configuration was theirs.
    const [before, asked] = this.#isNewcomer
      ? [{ text: configured, document: JSON.parse(configured) as PolicyDocument }, own]
      : [this.#base.policy, here.policy];
    if (before.text === asked.text) return undefined;
    const merged = policyOver(there, before, asked, running);
    return merged.text === there.text ? undefined : merged;
  }
}

function isSame(one: Remembered, other: Remembered): boolean {
  return one.version === other.version && one.policy.text === other.policy.text;
}
