import { Command } from "commander";
import { describeAsMarkdown, describeAsYaml } from "#config/describe.ts";
import { loadConfig } from "#config/load.ts";
import { stringify } from "yaml";

/** Shows and checks configuration; starts nothing. */
export function configCommand(): Command {
  return new Command("config")
    .description("Check a configuration file and print what is in force, or describe every key.")
    .option("-c, --config <file>", "YAML file to check")
    .option("--describe", "print a table of every key: default, accepted values, meaning")
    .option("--default", "print a file with every key at its default")
    .action((options: { config?: string; describe?: boolean; default?: boolean }) => {
      if (options.describe === true) process.stdout.write(describeAsMarkdown());
      else if (options.default === true) process.stdout.write(describeAsYaml());
      else
        process.stdout.write(stringify(loadConfig({ file: options.config, environment: process.env, overrides: [] })));
    });
}
