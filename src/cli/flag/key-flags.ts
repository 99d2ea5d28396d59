import { type Command, Option } from "commander";
import { COMMON, RARE } from "#drive/rare-option.ts";
import { type Override, overrideFromText, valueOf } from "#config/override.ts";
import { problemLine } from "#config/problem.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { names, repeated } from "./list-flag.ts";
import { type Path, nodeAt, schemaNode } from "#config/schema-node.ts";

/** A flag that sets one key of the configuration. */
export interface KeyFlag {
  /** As commander writes flags: `-p, --port <port>`. */
  readonly flags: string;
  readonly path: Path;
  readonly meaning: string;
  /** It takes several values, repeated or after commas. */
  readonly isList?: true;
  /** Shown by --help-all alone. */
  readonly isRare?: true;
}

/** Values of a command's options, as commander hands them over. */
export type Given = Readonly<Record<string, unknown>>;

/** Adds the flags, and --config and --set, which every command with a configuration has. */
export function addKeyFlags(command: Command, keyFlags: readonly KeyFlag[]): Command {
  command.option("-c, --config <file>", "configuration file (YAML); config/default.yaml shows every key");
  for (const { flags, meaning, isList, isRare } of keyFlags) {
    const option = new Option(flags, meaning).helpGroup(isRare === true ? RARE : COMMON);
    command.addOption(isList === true ? option.argParser(names) : option);
  }
  const meaning = "set any key of the configuration, for example limits.attemptsMax=2; repeat for more";
  return command.option("--set <key=value>", meaning, repeated);
}

/** What flags set, and what is wrong with those that name no key, a line each. */
export interface FlagOverrides {
  readonly overrides: readonly Override[];
  readonly problems: readonly string[];
}

/** What the flags set, as overrides of the configuration. */
export function keyOverrides(given: Given, keyFlags: readonly KeyFlag[]): FlagOverrides {
  const root = schemaNode(CONFIG_SCHEMA);
  const overrides: Override[] = [];
  for (const { flags, path } of keyFlags) {
    const option = new Option(flags);
    const value = given[option.attributeName()];
    const from = option.long ?? flags;
    const text = Array.isArray(value) ? value.join(",") : value;
    if (typeof text === "string") overrides.push({ path, value: valueOf(text, nodeAt(root, path)), from });
  }
  const problems: string[] = [];
  for (const one of textsOf(given["set"])) {
    const override = overrideFromText(one, root);
    if ("message" in override) problems.push(`--set: ${problemLine({ path: [], message: override.message })}`);
    else overrides.push(override);
  }
  return { overrides, problems };
}

export function textOf(given: Given, key: string): string | undefined {
  const value = given[key];
  return typeof value === "string" ? value : undefined;
}

function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.map(String) : [];
}
