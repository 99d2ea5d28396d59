import { Command, Option } from "commander";
import { ConfigError } from "../config/config-error.ts";
import { loadConfig } from "../config/load.ts";
import { overrideFromText, valueOf, type Override } from "../config/override.ts";
import { parseScorers, profileOfPolicy, readPolicyConfig } from "../config/policy-config.ts";
import { problemLine } from "../config/problem.ts";
import { loadProfile, type NamedProfile } from "../config/profile-file.ts";
import { CONFIG_SCHEMA, type Config } from "../config/schema.ts";
import { nodeAt, schemaNode, type Path } from "../config/schema-node.ts";
import { removedOption } from "./program.ts";

/** Flags that set one key of the configuration each: flag, key, what it says in the help. */
const KEY_FLAGS: readonly { readonly flags: string; readonly path: Path; readonly meaning: string }[] = [
  {
    flags: "--endpoint <url...>",
    path: ["endpoints"],
    meaning: "engine to route to; repeat for more (none: an emulated fleet is started)",
  },
  { flags: "--host <address>", path: ["listen", "host"], meaning: "address to listen on" },
  { flags: "-p, --port <port>", path: ["listen", "port"], meaning: "port to listen on; 0 takes a free one" },
  {
    flags: "--profile <name>",
    path: ["routing", "profile"],
    meaning: "routing profile by name, or the path of a profile file",
  },
  { flags: "--seed <integer>", path: ["routing", "seed"], meaning: "seed of the router's random draws" },
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
  },
  { flags: "--record <directory>", path: ["record", "directory"], meaning: "record a trace there" },
  { flags: "--log-level <level>", path: ["log", "level"], meaning: "trace, debug, info, warn, error or silent" },
];

/** What `serve` was asked to do. */
export interface ServePlan {
  readonly config: Config;
  /** The default profile, and every other one that a model or a header may select. */
  readonly profile: NamedProfile;
  readonly profiles: Readonly<Record<string, NamedProfile>>;
}

type Given = Readonly<Record<string, unknown>>;

export function addServeOptions(command: Command): Command {
  command.option("-c, --config <file>", "configuration file (YAML); see config/default.yaml");
  for (const { flags, meaning } of KEY_FLAGS) command.option(flags, meaning);
  command.option("--set <key=value...>", "set any key of the configuration, for example limits.attemptsMax=2");
  command.option("--routing-policy <name>", "weighted, or the name of a profile");
  command.option("--routing-scorers <list>", "name:weight pairs for the weighted policy, comma-separated");
  command.option("--policy-config <file>", "YAML file with routing-policy and routing-scorers");
  const successor = '--routing-scorers "prefix-affinity:3,queue-depth:2,kv-utilization:2"';
  command.addOption(removedOption(new Option("--routing-cache-weight <weight>"), successor));
  command.addOption(removedOption(new Option("--routing-load-weight <weight>"), successor));
  return command;
}

/** Configuration and profiles from flags, environment and files; throws ConfigError with all that is wrong. */
export function servePlan(given: Given, environment: Readonly<Record<string, string | undefined>>): ServePlan {
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
  const config = collect(() =>
    loadConfig({ file: text(given, "config"), environment, overrides: keyOverrides(given) }),
  );
  const policy = collect(() => policyProfile(given));
  const profile = policy ?? (config === undefined ? undefined : collect(() => loadProfile(config.routing.profile)));
  const profiles: Record<string, NamedProfile> = {};
  for (const name of new Set([
    ...Object.values(config?.routing.models ?? {}),
    ...(config?.routing.profilesAllowed ?? []),
  ])) {
    const loaded = collect(() => loadProfile(name));
    if (loaded !== undefined) profiles[name] = loaded;
  }
  if (config === undefined || profile === undefined || lines.length > 0) throw new ConfigError(lines);
  return { config, profile, profiles };
}

function keyOverrides(given: Given): Override[] {
  const root = schemaNode(CONFIG_SCHEMA);
  const overrides: Override[] = [];
  for (const { flags, path } of KEY_FLAGS) {
    const long = new Option(flags);
    const value = given[long.attributeName()];
    const from = long.long ?? flags;
    if (Array.isArray(value)) overrides.push({ path, value: value.map((url: unknown) => ({ url })), from });
    else if (typeof value === "string") overrides.push({ path, value: valueOf(value, nodeAt(root, path)), from });
  }
  const sets = given["set"];
  for (const one of Array.isArray(sets) ? sets : []) {
    const override = overrideFromText(String(one), root);
    if ("message" in override) throw new ConfigError([problemLine(override)]);
    overrides.push(override);
  }
  return overrides;
}

/** The profile that --routing-policy, --routing-scorers and --policy-config ask for; undefined when none was given. */
function policyProfile(given: Given): NamedProfile | undefined {
  const file = text(given, "policyConfig");
  const policy = text(given, "routingPolicy");
  const scorers = text(given, "routingScorers");
  if (file === undefined && policy === undefined && scorers === undefined) return undefined;
  if (given["profile"] !== undefined) {
    throw new ConfigError([
      "--profile: expected to be alone, got it together with --routing-policy, --routing-scorers or --policy-config",
    ]);
  }
  const base = file === undefined ? { policy: "weighted", scorers: undefined } : readPolicyConfig(file);
  const flags = {
    ...(policy === undefined ? {} : { policy }),
    ...(scorers === undefined ? {} : { scorers: parseScorers(scorers) }),
  };
  return profileOfPolicy(
    { ...base, ...flags },
    scorers !== undefined || file === undefined ? "--routing-scorers" : file,
  );
}

function text(given: Given, key: string): string | undefined {
  const value = given[key];
  return typeof value === "string" ? value : undefined;
}
