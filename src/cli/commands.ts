import type { Command } from "commander";

/** Every command by name, in the help's order, and how to load it: a command reads only the code that it needs. */
export const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("./serve/serve.ts")).serveCommand(),
  emulate: async () => (await import("./serve/emulate.ts")).emulateCommand(),
  drive: async () => (await import("#drive/command.ts")).driveCommand(),
  simulate: async () => (await import("./simulate/simulate.ts")).simulateCommand(),
  replay: async () => (await import("./replay.ts")).replayCommand(),
  "what-if": async () => (await import("./what-if/what-if.ts")).whatIfCommand(),
  tune: async () => (await import("./tune/tune.ts")).tuneCommand(),
  evaluate: async () => (await import("./evaluate/evaluate.ts")).evaluateCommand(),
  "gepa-evaluate": async () => (await import("./evaluate/evaluate.ts")).evaluateCommand("gepa-evaluate", "gepa"),
  "openevolve-evaluate": async () =>
    (await import("./evaluate/evaluate.ts")).evaluateCommand("openevolve-evaluate", "openevolve"),
  sweep: async () => (await import("./sweep/sweep.ts")).sweepCommand(),
  trace: async () => (await import("./trace/trace.ts")).traceCommand(),
  calibrate: async () => (await import("./calibrate/calibrate.ts")).calibrateCommand(),
  compare: async () => (await import("./compare/compare.ts")).compareCommand(),
  profiles: async () => (await import("./profiles.ts")).profilesCommand(),
  explain: async () => (await import("./explain/explain.ts")).explainCommand(),
  policy: async () => (await import("./policy/policy.ts")).policyCommand(),
  autopilot: async () => (await import("./autopilot/autopilot.ts")).autopilotCommand(),
  rollout: async () => (await import("./rollout/rollout.ts")).rolloutCommand(),
  endpoints: async () => (await import("./endpoints/endpoints.ts")).endpointsCommand(),
  keys: async () => (await import("./keys.ts")).keysCommand(),
  config: async () => (await import("./config.ts")).configCommand(),
};
