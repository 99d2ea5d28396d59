import type { Command } from "commander";
import { rareOption } from "#drive/rare-option.ts";
import { aibrixOverrides } from "#config/aibrix-environment.ts";
import { ConfigError } from "#config/config-error.ts";
import { type BlisPolicy, parseScorers, profileOfPolicy, readPolicyConfig } from "#config/policy-config.ts";
import { type NamedProfile, loadProfile } from "#config/profile-file.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import type { ServePlan } from "#serve/plan/serve-plan.ts";
import { givenConfig } from "../flag/given-config.ts";
import { type Given, type KeyFlag, addKeyFlags, textOf } from "../flag/key-flags.ts";
import { removedWeights } from "../flag/removed-weights.ts";

const KEY_FLAGS: readonly KeyFlag[] = [
  {
    flags: "--endpoint <url>",
    path: ["endpoints"],
    isList: true,
    meaning: "engine to route to; repeat for more (without any, an emulated fleet is started)",
  },
  { flags: "--host <address>", path: ["listen", "host"], meaning: "address to listen on", isRare: true },
  { flags: "-p, --port <port>", path: ["listen", "port"], meaning: "port to listen on; 0 takes a free one" },
  {
    flags: "--admin-port <port>",
    path: ["listen", "adminPort"],
    meaning: "port of status pages and administration; by default the one after --port",
  },
  {
    flags: "--picker-port <port>",
    path: ["picker", "port"],
    meaning: "port on which Envoy asks for endpoints (external processing); off by default",
    isRare: true,
  },
  {
    flags: "--profile <name>",
    path: ["routing", "profile"],
    meaning: `routing profile by name, or the path of ${PROFILE_FILES}`,
  },
  { flags: "--seed <integer>", path: ["routing", "seed"], meaning: "seed of the router's random draws", isRare: true },
  {
    flags: "--tokenizer <kind>",
    path: ["tokenizer", "kind"],
    meaning: "estimate, character, tiktoken, huggingface or vllm",
  },
  { flags: "--tokenizer-file <file>", path: ["tokenizer", "file"], meaning: "tokenizer.json for kind huggingface" },
  {
    flags: "--scrape-interval <millis>",
    path: ["scrape", "intervalMillis"],
    meaning: "time between two scrapes of an endpoint",
    isRare: true,
  },
  { flags: "--record <directory>", path: ["record", "directory"], meaning: "record a trace there" },
  { flags: "--log-level <level>", path: ["log", "level"], meaning: "trace, debug, info, warn, error or silent" },
];

type Environment = Readonly<Record<string, string | undefined>>;

/** `more` are flags of a command that starts a gateway of another kind. */
export function addServeOptions(command: Command, more: readonly KeyFlag[] = []): Command {
  addKeyFlags(command, [...more, ...KEY_FLAGS]);
  command.addOption(rareOption("--routing-policy <name>", "weighted, or the name of a profile"));
  command.option("--routing-scorers <list>", "name:weight pairs of the weighted policy, comma-separated");
  command.addOption(rareOption("--policy-config <file>", "YAML file with routing-policy and routing-scorers"));
  for (const option of removedWeights()) command.addOption(option);
  return command;
}

/** Configuration and profiles from flags, environment and files; throws ConfigError with all that is wrong. */
export function servePlan(given: Given, environment: Environment, more: readonly KeyFlag[] = []): ServePlan {
  const lines: string[] = [];
  const collect = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      lines.push(...error.lines);
      return undefined;
    }
  };
  const fromAibrix = collect(() => aibrixOverrides(environment)) ?? [];
  const { config, lines: wrong } = givenConfig(given, [...more, ...KEY_FLAGS], environment, fromAibrix);
  lines.push(...wrong);
  const chosen = collect(() => policyProfile(given));
  const resolved =
    config === undefined
      ? collect(() => loadProfile(textOf(given, "profile") ?? DEFAULT_PROFILE))
      : collect(() => resolveProfiles(config, { environment, chosen, readsFiles: true }));
  if (config === undefined || resolved === undefined || !("profiles" in resolved) || lines.length > 0) {
    throw new ConfigError([...new Set(lines)]);
  }
  const configFile = textOf(given, "config");
  const reload = () => servePlan(given, environment, more);
  return { config, ...resolved, ...(configFile !== undefined && { configFile }), reload };
}

const DEFAULT_PROFILE = "gnomon";

/** The profile that --routing-policy, --routing-scorers and --policy-config ask for; undefined when none was given. */
function policyProfile(given: Given): NamedProfile | undefined {
  const file = textOf(given, "policyConfig");
  const policy = textOf(given, "routingPolicy");
  const scorers = textOf(given, "routingScorers");
  if (file === undefined && policy === undefined && scorers === undefined) return undefined;
  if (given["profile"] !== undefined) {
    const others = "--routing-policy, --routing-scorers or --policy-config";
    throw new ConfigError([`--profile: expected to be alone, got it together with ${others}`]);
  }
  const base: BlisPolicy = file === undefined ? { policy: "weighted", scorers: undefined } : readPolicyConfig(file);
  const asked: BlisPolicy = {
    policy: policy ?? base.policy,
    scorers: scorers === undefined ? base.scorers : parseScorers(scorers),
  };
  return profileOfPolicy(asked, {
    policy: policy === undefined ? (file ?? "--routing-scorers") : "--routing-policy",
    scorers: scorers === undefined ? (file ?? "--routing-policy") : "--routing-scorers",
  });
}
