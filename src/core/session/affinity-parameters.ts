/** Bounds of a table of sessions, shared by every plugin that keeps one. */
export const AFFINITY_PARAMETERS = {
  sessionsMax: { type: "integer", default: 65_536, min: 1, meaning: "sessions remembered" },
  idleSecondsMax: { type: "number", default: 3600, min: 0.001, meaning: "silence after which a session is forgotten" },
} as const;
