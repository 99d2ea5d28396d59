import { type Command, InvalidArgumentError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { problemLine, unknownWord } from "#config/problem.ts";
import { readYamlFile } from "#config/yaml-file.ts";

/**
 * Sets a command's options from a YAML mapping of their long names, `objective: goodput`; what was given on the command
 * line stays. Throws ConfigError with every problem.
 */
export function setOptionsFromFile(command: Command, file: string): void {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const { value, lineOf } = yaml.value;
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ConfigError([`${file}: expected a mapping of options`]);
  const problems: string[] = [];
  for (const [key, given] of Object.entries(value)) {
    const problem = setOption(command, key, given);
    if (problem !== undefined) problems.push(`${key}: ${problem} (${file} line ${lineOf([key])})`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
}

/** Undefined where it was set, or stands on the command line already. */
function setOption(command: Command, key: string, given: unknown): string | undefined {
  const options = command.options.filter(({ long }) => long !== undefined && long !== "--config");
  const option = options.find(({ long }) => long === `--${key}`);
  if (option === undefined)
    return unknownWord(
      "option",
      key,
      options.map(({ long }) => long!.slice(2)),
    );
  const isFlag = option.isBoolean();
  if (isFlag ? typeof given !== "boolean" : typeof given !== "string" && typeof given !== "number")
    return `expected ${isFlag ? "true or false" : "a text or a number"}, got ${JSON.stringify(given)}`;
  if (command.getOptionValueSource(option.attributeName()) === "cli") return undefined;
  try {
    const parsed: unknown = isFlag
      ? given
      : option.parseArg
        ? option.parseArg(String(given), option.defaultValue)
        : String(given);
    command.setOptionValueWithSource(option.attributeName(), parsed, "config");
    return undefined;
  } catch (error) {
    if (error instanceof InvalidArgumentError) return error.message;
    throw error;
  }
}
