import type { LiveSetting } from "#config/live-settings.ts";
import type { ResolvedProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";

/** What settings are from now on. */
export interface Changed extends ResolvedProfiles {
  readonly config: Config;
  /** Of the policy. */
  readonly version: number;
  /** Where the change came from. */
  readonly source: string;
}

/** What every part can need beside others: a way to have settings taken over. */
export interface Changes {
  /** Has the parts that own these settings take them over, in the order in which they started. */
  readonly changed: (settings: readonly LiveSetting[], to: Changed) => void;
}

/** One part of a running process: what it needs, how it starts, stops and changes while it runs. */
export interface Part<Name extends string, Needs, Value> {
  readonly name: Name;
  /** Names of what `start` gets: other parts, or what the whole is started with. */
  readonly needs: readonly (keyof Needs & string)[];
  /** Begins once all that it needs has started. What it throws ends the start of the whole. */
  readonly start: (needs: Needs) => Value | Promise<Value>;
  /** Lets work under way end, before any part stops: of all parts at the same time, and in its own time. */
  readonly drain?: (value: Value, needs: Needs) => Promise<void>;
  /** Ends it. What needs it was stopped before. */
  readonly stop?: (value: Value, needs: Needs) => unknown;
  /** The settings that it alone takes over while it runs; each belongs to one part. */
  readonly settings?: readonly LiveSetting[];
  /** Takes them over; at once, between two requests. */
  readonly change?: (value: Value, changed: Changed, needs: Needs) => void;
}

/** A part of whatever kind. */
export interface AnyPart extends Pick<Part<string, never, unknown>, "name" | "settings"> {
  readonly needs: readonly string[];
  readonly start: (needs: never) => unknown;
  readonly drain?: (value: never, needs: never) => Promise<void>;
  readonly stop?: (value: never, needs: never) => unknown;
  readonly change?: (value: never, changed: Changed, needs: never) => void;
}

type Listed<Needs, Names extends readonly string[]> = keyof Needs extends Names[number]
  ? unknown
  : { readonly needs: readonly [`missing: ${Exclude<keyof Needs & string, Names[number]>}`] };

/** Checks that a part lists all that its `start` takes, and takes its types from that. */
export function part<
  const Name extends string,
  Needs extends object,
  Value,
  const Names extends readonly (keyof Needs & string)[],
>(made: Part<Name, Needs, Value> & { readonly needs: Names } & Listed<Needs, Names>): Part<Name, Needs, Value> {
  return made;
}
