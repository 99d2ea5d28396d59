/** silent: it answers nothing at all. stalled: it answers probes, and no request. */
export type HangReason = "silent" | "stalled";
