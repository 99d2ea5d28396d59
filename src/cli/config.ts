import { Command } from "commander";
import { describeAsMarkdown, describeAsYaml } from "#config/describe.ts";
import { loadConfig } from "#config/load.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import { requirePackages } from "#serve/process/optional-packages.ts";
import { stringify } from "yaml";
import { AIBRIX_PARAMETERS, aibrixOverrides } from "#config/aibrix-environment.ts";

interface Options {
  readonly config?: string;
  readonly withoutSecrets?: boolean;
  readonly describe?: boolean;
  readonly default?: boolean;
}

/** Shows and checks configuration; starts nothing. */
export function configCommand(): Command {
  return new Command("config")
    .description("Check a configuration file and print what is in force, or describe every key.")
    .option("-c, --config <file>", "YAML file to check")
    .option("--without-secrets", "take variables that hold secrets as set, such as in a pipeline that has none")
    .option("--describe", "print a table of every key: default, accepted values, meaning")
    .option("--default", "print a file with every key at its default")
    .action((options: Options) => {
      if (options.describe === true) process.stdout.write(describeAsMarkdown());
      else if (options.default === true) process.stdout.write(describeAsYaml());
      else process.stdout.write(configText(options, process.env));
    });
}

/** What serve would run with: the file, GNOMON_* and AIBRIX_* variables. Throws ConfigError. */
function configText(
  { config: file, withoutSecrets = false }: Options,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const config = loadConfig({ file, environment, overrides: aibrixOverrides(environment), withoutSecrets });
  // What they choose among, and what is set of it, is as wrong here as it would be at the start.
  resolveProfiles(config, { environment, readsFiles: true });
  requirePackages(config);
  const parameters = Object.entries(AIBRIX_PARAMETERS).flatMap(([name, { plugin, parameter }]) => {
    const value = environment[name];
    return value === undefined
      ? []
      : [`# ${name}: ${parameter} of ${plugin} is ${value} in every profile that has it\n`];
  });
  return stringify(config) + parameters.join("");
}
