import { basename, resolve } from "node:path";
import { ConfigError } from "./config-error.ts";
import { aibrixProfile, isComposite, isStrategy } from "./peer-aibrix.ts";
import { llmDProfile } from "./llm-d-config.ts";
import { isPath, loadNativeProfile, type NamedProfile, profileNames } from "./native-profile.ts";
import { profileOfPolicy, readPolicyConfig } from "./policy-config.ts";
import { problemLine } from "./problem.ts";
import { readSimulationPolicies } from "./simulation-policies.ts";
import { readYamlFile, type YamlFile } from "./yaml-file.ts";

export { type NamedProfile, profileNames } from "./native-profile.ts";

/**
 * A profile by what names it: a shipped one by its name, or by AIBrix's name of it (`prefix-cache`, `prefix-aware`);
 * AIBrix's composite strategy (`least-request:2,throughput:1`);
 * or a file by its path, which holds a profile, an EndpointPickerConfig of llm-d, or a policy bundle of BLIS, distinguished
 * by their keys. Throws ConfigError with every problem.
 */
export function loadProfile(nameOrPath: string): NamedProfile {
  if (!isPath(nameOrPath)) {
    refuseSeveral(nameOrPath);
    const asked = isComposite(nameOrPath) || (isStrategy(nameOrPath) && !profileNames().includes(nameOrPath));
    return asked ? aibrixProfile(nameOrPath) : loadNativeProfile(nameOrPath);
  }
  const file = resolve(nameOrPath);
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  switch (kindOf(yaml.value)) {
    case "profile":
      return loadNativeProfile(nameOrPath);
    case "llm-d":
      return llmDProfile(yaml.value, nameOf(file));
    case "blis-weighted": {
      const origin = { policy: file, scorers: file };
      return { ...profileOfPolicy(readPolicyConfig(file), origin), name: nameOf(file) };
    }
    case "blis-bundle":
      return bundle(file);
  }
}

/** Names of profiles after commas, where a list is of AIBrix's strategies. */
function refuseSeveral(text: string): void {
  const names = text.split(",");
  const known = profileNames();
  if (names.length < 2 || names.every(isStrategy) || !names.every((name) => known.includes(name))) return;
  throw new ConfigError([`profile: expected one profile, got ${names.length}: ${names.join(", ")}`]);
}

type Kind = "profile" | "llm-d" | "blis-weighted" | "blis-bundle";

function kindOf({ value }: YamlFile): Kind {
  if (value === null || typeof value !== "object") return "profile";
  if ("apiVersion" in value || "kind" in value || "schedulingProfiles" in value) return "llm-d";
  if ("routing-policy" in value || "routing-scorers" in value) return "blis-weighted";
  return "routing" in value ? "blis-bundle" : "profile";
}

/** The routing section of a bundle; what admits, orders and batches belongs to the simulator and the engines. */
function bundle(file: string): NamedProfile {
  const { routing } = readSimulationPolicies(file);
  if (routing === undefined) throw new ConfigError([`routing: expected a policy, got none (${file})`]);
  return { ...profileOfPolicy(routing, { policy: file, scorers: file }), name: nameOf(file) };
}

function nameOf(file: string): string {
  return basename(file).replace(/\.ya?ml$/, "");
}
