/** Where what an endpoint is believed to hold comes from: its engine's own events, or what was sent there. */
export type PrefixSource = "precise" | "approximate";

/**
 * Why an endpoint's events are not believed although they came once.
 * - disconnected: its publisher cannot be reached.
 * - undecodable: what it publishes cannot be read.
 * - block-size: its blocks cannot be made of the prompts' blocks.
 * - stopped: nobody follows them any more.
 */
export const KV_EVENTS_LOST_REASONS = ["disconnected", "undecodable", "block-size", "stopped"] as const;
export type KvEventsLostReason = (typeof KV_EVENTS_LOST_REASONS)[number];

/**
 * Why an endpoint's cache is guessed and not known: no-events: none ever came. silent: it computes and reports nothing.
 * late: it held blocks before its events were followed, and they are not replaced yet.
 */
export type ApproximateReason = "no-events" | "silent" | "late" | KvEventsLostReason;

export interface Knowledge {
  readonly source: PrefixSource;
  /** "" where it is precise. */
  readonly reason: "" | ApproximateReason;
}

export const PRECISE: Knowledge = { source: "precise", reason: "" };

export const GUESSED: Readonly<Record<ApproximateReason, Knowledge>> = {
  "no-events": { source: "approximate", reason: "no-events" },
  silent: { source: "approximate", reason: "silent" },
  late: { source: "approximate", reason: "late" },
  disconnected: { source: "approximate", reason: "disconnected" },
  undecodable: { source: "approximate", reason: "undecodable" },
  "block-size": { source: "approximate", reason: "block-size" },
  stopped: { source: "approximate", reason: "stopped" },
};
