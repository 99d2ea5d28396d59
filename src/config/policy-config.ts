import { checkProfile, completeProfile } from "#core/profile/check.ts";
import type { ScorerSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { checkShape, pathText, problemLine, type Problem, unknownWord } from "./problem.ts";
import { loadNativeProfile, signalsAs, profileNames, type NamedProfile } from "./native-profile.ts";
import { POLICY_CONFIG_SCHEMA } from "./profile-schema.ts";
import { readYamlFile } from "./yaml-file.ts";

/** A policy as BLIS writes it, in YAML or in flags. */
export interface BlisPolicy {
  readonly policy: string;
  /** Undefined takes the default weights 3/2/2. */
  readonly scorers: readonly { readonly name: string; readonly weight: number }[] | undefined;
}

const REMOVED: Readonly<Record<string, string>> = {
  cache_weight: "routing-scorers",
  load_weight: "routing-scorers",
  "routing-cache-weight": "routing-scorers",
  "routing-load-weight": "routing-scorers",
};

/** Reads --policy-config. Throws ConfigError with every problem, naming the successor of keys that were removed. */
export function readPolicyConfig(file: string): BlisPolicy {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const { value, lineOf } = yaml.value;
  const checked = checkShape(POLICY_CONFIG_SCHEMA, value);
  if (!checked.ok) {
    throw new ConfigError(
      checked.problems.map((problem) => problemLine(withSuccessor(problem), `${file} line ${lineOf(problem.path)}`)),
    );
  }
  return { policy: checked.value["routing-policy"], scorers: checked.value["routing-scorers"] };
}

/** Reads `prefix-affinity:3,queue-depth:2`. Names and weights are judged later, with the profile. */
export function parseScorers(text: string): NonNullable<BlisPolicy["scorers"]> {
  return text.split(",").map((part) => {
    const [, name, weight] = /^\s*([^:\s]+)\s*:\s*(\S+)\s*$/.exec(part) ?? [];
    if (name === undefined || weight === undefined) {
      throw new ConfigError([
        `--routing-scorers: expected name:weight pairs such as prefix-affinity:3,queue-depth:2, got ${JSON.stringify(part)}`,
      ]);
    }
    return { name, weight: Number(weight) };
  });
}

/** Where the two parts of a policy were written, for messages: a flag or a file. */
export interface PolicyOrigin {
  readonly policy: string;
  readonly scorers: string;
}

/** The profile that a policy stands for. Throws ConfigError with every problem. */
export function profileOfPolicy({ policy, scorers }: BlisPolicy, from: PolicyOrigin): NamedProfile {
  if (policy !== "weighted") return namedPolicy(policy, scorers, from);
  const given = scorers?.map(({ name, weight }): ScorerSpec => ({ plugin: name, weight, parameters: {} }));
  const spec = {
    filters: [],
    scorers: given ?? loadNativeProfile("weighted").spec.scorers,
    picker: { plugin: "max-score", parameters: {} },
  };
  const problems = checkProfile(spec);
  if (problems.length > 0) {
    const renamed = (path: string) => path.replace(/^scorers/, "routing-scorers").replace(/\.plugin$/, ".name");
    throw new ConfigError(problems.map(({ path, message }) => `${renamed(path)}: ${message} (${from.scorers})`));
  }
  return {
    name: "weighted",
    summary: "a weighted sum of scorers",
    source: "BLIS, Composable Scorer Framework",
    spec: completeProfile(spec),
    ...signalsAs("weighted"),
  };
}

function namedPolicy(policy: string, scorers: BlisPolicy["scorers"], from: PolicyOrigin): NamedProfile {
  const accepted = [...new Set(["weighted", ...profileNames()])];
  if (!accepted.includes(policy)) {
    throw new ConfigError([`routing-policy: ${unknownWord("policy", policy, accepted)} (${from.policy})`]);
  }
  if (scorers !== undefined) {
    throw new ConfigError([
      `routing-scorers: expected none unless routing-policy is weighted, got them with ${policy} (${from.scorers})`,
    ]);
  }
  return loadNativeProfile(policy);
}

function withSuccessor(problem: Problem): Problem {
  const key = problem.path.at(-1);
  const successor = typeof key === "string" && Object.hasOwn(REMOVED, key) ? REMOVED[key] : undefined;
  if (successor === undefined) return problem;
  return {
    path: problem.path,
    message: `expected ${successor} (a list of name and weight), got the removed key ${pathText([key ?? ""])}`,
  };
}
