import { ConfigError } from "#config/config-error.ts";
import { type PolicyMerge, configOver } from "#config/policy-document.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import type { Config } from "#config/schema.ts";
import { parseYamlFile } from "#config/yaml-file.ts";
import type { PolicyAdmin, PolicyRequest } from "#live/admin/policy-admin.ts";
import { type Policy, policyOf } from "./policy.ts";
import type { PolicyKeeper } from "./policy-keeper.ts";
import type { PolicyGround } from "./policy-source.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The policy that a document from a network asks for. It can name no file. Throws ConfigError. */
export function policyFromDocument(
  document: unknown,
  how: PolicyMerge,
  { inForce, configured }: PolicyGround,
  running: Config,
  environment: Environment,
): Policy {
  const base = how === "merge" ? inForce : configured;
  const config = configOver(running, base.document, document, how);
  return policyOf({ config, ...resolveProfiles(config, { environment, readsFiles: false }) }, running);
}

/** What a text of JSON or YAML asks for, laid over the configuration. */
export function policyFromText(text: string, ground: PolicyGround, running: Config, environment: Environment): Policy {
  const parsed = parseYamlFile("policy", text);
  if (!parsed.ok) throw new ConfigError(parsed.problems.map((problem) => `policy: ${problem.message}`));
  return policyFromDocument(parsed.value.value, "replace", ground, running, environment);
}

/** The admin API's side of the keeper. */
export function policyAdmin(
  keeper: PolicyKeeper,
  running: Config,
  environment: Environment,
  unkept: PolicyAdmin["unkept"] = () => Promise.resolve([]),
): PolicyAdmin {
  const proposal = ({ by, dryRun, force = false, ifVersion }: PolicyRequest) => ({
    source: "admin",
    by,
    dryRun,
    force,
    ifVersion,
  });
  return {
    bytesMax: running.policy.documentBytesMax,
    view: (version) => keeper.view(version),
    history: () => keeper.history(),
    counts: () => keeper.counts(),
    unkept,
    change: (document, how, request) =>
      keeper.offer({
        ...proposal(request),
        note: how === "merge" ? "merged" : "",
        read: (ground) => policyFromDocument(document, how, ground, running, environment),
      }),
    rollback: (version, request) =>
      keeper.offer({
        ...proposal(request),
        note: `rollback to ${String(version).slice(0, VERSION_CHARS_MAX)}`,
        read: ({ remembered }) => {
          const found = typeof version === "number" ? remembered(version) : undefined;
          if (found !== undefined) return found;
          const known = keeper.history().versions.map((one) => one.version);
          const accepted = `one of the remembered versions ${known.at(-1)} to ${known[0]}`;
          throw new ConfigError([`version: expected ${accepted}, got ${JSON.stringify(version) ?? "nothing"}`]);
        },
      }),
  };
}

const VERSION_CHARS_MAX = 20;
