import { assert } from "../base/assert.ts";
import type { Decision } from "../input/decision.ts";
import type { Input } from "../input/input.ts";
import type { RouteRequest } from "../request/request.ts";
import type { PolicySpec, ProfileSpec } from "../plugin/spec.ts";
import { buildProfile, signalsOf } from "./build-profile.ts";
import type { Profile } from "./profile.ts";

interface Entry {
  readonly spec: ProfileSpec;
  readonly profile: Profile;
}

/** The profiles of a router, which of them is the default, and the number of the policy that they make up. */
export class ProfileSet {
  readonly #keepsBreakdowns: boolean;
  /** Those of the policy, and those that rollouts need beside them. */
  #policy: Readonly<Record<string, ProfileSpec>> = {};
  #kept: Readonly<Record<string, ProfileSpec>> = {};
  #entries: ReadonlyMap<string, Entry> = new Map();
  #defaultProfile: string;
  version: number;
  all: readonly Profile[] = [];
  /** The one for requests that select none. */
  byDefault!: Profile;
  /** Some profile wants to see every input. */
  watched = false;
  /** Some profile reads sessions. */
  readsSessions = false;

  /** The policy was checked. `keepsBreakdowns` as Profile takes it. */
  constructor(policy: PolicySpec, keepsBreakdowns: boolean) {
    this.#keepsBreakdowns = keepsBreakdowns;
    this.#defaultProfile = policy.defaultProfile;
    this.version = policy.version;
    this.replace(policy);
  }

  /** Shows the plugins of every profile what another router did. */
  observe(input: Input, decision: Decision | undefined, request: RouteRequest): void {
    for (const profile of this.all) profile.observe(input, decision, request);
  }

  get(name: string): Profile | undefined {
    return this.#entries.get(name)?.profile;
  }

  /** The profile of that name, or the default where there is none. */
  choose(name: string): Profile {
    return this.#entries.get(name)?.profile ?? this.byDefault;
  }

  /** Sets one profile beside the others; the policy's number stays. */
  set(name: string, spec: ProfileSpec): void {
    this.#policy = { ...this.#policy, [name]: spec };
    this.#changed();
  }

  /** Profiles beside those of the policy, which win where a name is in both; others that were kept are gone. */
  keep(profiles: Readonly<Record<string, ProfileSpec>>): void {
    this.#kept = profiles;
    this.#changed();
  }

  /**
   * Another policy, whole: profiles that it does not have are gone, but for those that are kept. Plugins that a profile
   * of the same name had, with the same parameters, stay with what they learned, so that other weights do not forget
   * sessions, counters or turns.
   */
  replace({ version, profiles, defaultProfile }: PolicySpec): void {
    assert(Object.hasOwn(profiles, defaultProfile), "the default profile is among the profiles");
    this.#policy = profiles;
    this.#defaultProfile = defaultProfile;
    this.version = version;
    this.#changed();
  }

  #built(name: string, spec: ProfileSpec): Entry {
    const before = this.#entries.get(name);
    if (before?.spec === spec) return before;
    return { spec, profile: buildProfile(name, spec, this.#keepsBreakdowns, before) };
  }

  #changed(): void {
    const specs = Object.entries({ ...this.#kept, ...this.#policy });
    this.#entries = new Map(specs.map(([name, spec]) => [name, this.#built(name, spec)]));
    const entries = [...this.#entries.values()];
    this.all = entries.map(({ profile }) => profile);
    this.byDefault = this.#entries.get(this.#defaultProfile)!.profile;
    this.watched = this.all.some((profile) => profile.watches);
    this.readsSessions = entries.some(({ spec }) => signalsOf(spec).has("session"));
  }
}
