import type { Command } from "commander";

/** Groups of commands, in the help's order. */
export type CommandGroup = "run" | "ask" | "roll out" | "traces" | "policies";

export interface CommandEntry {
  readonly group: CommandGroup;
  /** A line of the help. */
  readonly summary: string;
  /** Not in the help's list: another name of a command that is. */
  readonly isAlias?: true;
  readonly load: () => Promise<Command>;
}

const evaluation = async () => (await import("./evaluate/evaluate.ts")).evaluateCommand;

/** Every command by name, in the help's order, and how to load it: a command reads only the code that it needs. */
export const COMMANDS: Readonly<Record<string, CommandEntry>> = {
  serve: {
    group: "run",
    summary: "route requests to engines; without any, to an emulated fleet",
    load: async () => (await import("./serve/serve.ts")).serveCommand(),
  },
  tap: {
    group: "run",
    summary: "stand in front of another router and record what it decides",
    load: async () => (await import("./serve/tap.ts")).tapCommand(),
  },
  emulate: {
    group: "run",
    summary: "run emulated vLLM engines, without a GPU",
    load: async () => (await import("./serve/emulate.ts")).emulateCommand(),
  },
  drive: {
    group: "run",
    summary: "send a recorded or synthetic workload and measure the answers",
    load: async () => (await import("#drive/command.ts")).driveCommand(),
  },
  replay: {
    group: "ask",
    summary: "decide a recorded trace again and compare, bit for bit",
    load: async () => (await import("./replay.ts")).replayCommand(),
  },
  calibrate: {
    group: "ask",
    summary: "fit an engine's step times to recorded traffic",
    load: async () => (await import("./calibrate/calibrate.ts")).calibrateCommand(),
  },
  "what-if": {
    group: "ask",
    summary: "simulate recorded traffic under other profiles, fleets, rates",
    load: async () => (await import("./what-if/what-if.ts")).whatIfCommand(),
  },
  reproduce: {
    group: "ask",
    summary: "find the policy behind another router's decisions",
    load: async () => (await import("./reproduce/reproduce.ts")).reproduceCommand(),
  },
  why: {
    group: "ask",
    summary: "explain lost cached tokens and slow answers of a trace",
    load: async () => (await import("./why/why.ts")).whyCommand(),
  },
  tune: {
    group: "ask",
    summary: "search for a better policy for recorded traffic, and judge it",
    load: async () => (await import("./tune/tune.ts")).tuneCommand(),
  },
  simulate: {
    group: "ask",
    summary: "run a cluster under a policy in virtual time, without a trace",
    load: async () => (await import("./simulate/simulate.ts")).simulateCommand(),
  },
  sweep: {
    group: "ask",
    summary: "run a grid of what-ifs or simulations, here or in shards",
    load: async () => (await import("./sweep/sweep.ts")).sweepCommand(),
  },
  evaluate: {
    group: "ask",
    summary: "score candidate policies for GEPA or OpenEvolve, as JSON",
    load: async () => (await evaluation())(),
  },
  "gepa-evaluate": {
    group: "ask",
    summary: "evaluate --form gepa",
    isAlias: true,
    load: async () => (await evaluation())("gepa-evaluate", "gepa"),
  },
  "openevolve-evaluate": {
    group: "ask",
    summary: "evaluate --form openevolve",
    isAlias: true,
    load: async () => (await evaluation())("openevolve-evaluate", "openevolve"),
  },
  compare: {
    group: "ask",
    summary: "compare live runs of several policies with their simulations",
    load: async () => (await import("./compare/compare.ts")).compareCommand(),
  },
  rollout: {
    group: "roll out",
    summary: "plan, start, watch, promote or roll back a profile's rollout",
    load: async () => (await import("./rollout/rollout.ts")).rolloutCommand(),
  },
  policy: {
    group: "roll out",
    summary: "show and change the policy of a running gateway",
    load: async () => (await import("./policy/policy.ts")).policyCommand(),
  },
  autopilot: {
    group: "roll out",
    summary: "accept or decline what a running gateway's shadow proposes",
    load: async () => (await import("./autopilot/autopilot.ts")).autopilotCommand(),
  },
  endpoints: {
    group: "roll out",
    summary: "show, cordon and drain endpoints of a running gateway",
    load: async () => (await import("./endpoints/endpoints.ts")).endpointsCommand(),
  },
  trace: {
    group: "traces",
    summary: "inspect, slice, scale, merge and convert traces and workloads",
    load: async () => (await import("./trace/trace.ts")).traceCommand(),
  },
  profiles: {
    group: "policies",
    summary: "list the routing profiles, or show some in detail",
    load: async () => (await import("./profiles.ts")).profilesCommand(),
  },
  explain: {
    group: "policies",
    summary: "show the table behind a decision",
    load: async () => (await import("./explain/explain.ts")).explainCommand(),
  },
  config: {
    group: "policies",
    summary: "check a configuration file, or describe every key",
    load: async () => (await import("./config.ts")).configCommand(),
  },
  keys: {
    group: "policies",
    summary: "make and check API keys of clients",
    load: async () => (await import("./keys.ts")).keysCommand(),
  },
};
