import { type Command, Help, Option } from "commander";
import { COMMON, RARE } from "#drive/rare-option.ts";
import { COMMANDS } from "./commands.ts";
import { EXAMPLES } from "./examples.ts";

const HELP_ALL = "--help-all";
const GROUP_WIDTH = 10;
const NAME_WIDTH = 12;

/** One screen: what the program is, and its commands in groups, a line each. */
export function programHelp(): string {
  let before = "";
  const rows = Object.entries(COMMANDS)
    .filter(([, { isAlias }]) => isAlias !== true)
    .map(([name, { group, summary }]) => {
      const heading = group === before ? "" : group;
      before = group;
      return `${heading.padEnd(GROUP_WIDTH)}${name.padEnd(NAME_WIDTH)}${summary}`;
    });
  return [
    "Usage: gnomon [command] [options]",
    "",
    "A request router for vLLM, with a shadow simulator beside it. Without a command: serve.",
    "",
    "  gnomon                              a gateway before three emulated engines",
    "  gnomon COMMAND --help, --help-all   an example and the usual options; every option",
    "",
    ...rows,
    "",
  ].join("\n");
}

/** Every command with all of its options. */
export function wholeHelp(commands: readonly Command[], help: Help): string {
  const all = commands.flatMap((command) => [command, ...command.commands]);
  return `${all.map((command) => optionsOf(command, help)).join("\n\n")}\n`;
}

function optionsOf(command: Command, help: Help): string {
  const options = command.options.filter((option) => !option.hidden && option.long !== HELP_ALL);
  const width = Math.max(0, ...options.map((option) => option.flags.length)) + 2;
  const rows = options.map((option) => `  ${option.flags.padEnd(width)}${meaningOf(help, option)}`);
  return [help.commandUsage(command), `  ${command.description()}`, ...rows].join("\n");
}

/** As commander has it, with no default that is empty or false. */
function meaningOf(help: Help, option: Option): string {
  const { defaultValue } = option as { defaultValue: unknown };
  const isNothing = defaultValue === false || (Array.isArray(defaultValue) && defaultValue.length === 0);
  const shown = isNothing ? (Object.create(option, { defaultValue: { value: undefined } }) as Option) : option;
  return Help.prototype.optionDescription.call(help, shown);
}

/** The command's help begins with an example and leaves out what is rare; --help-all prints that too. */
export function addHelp(command: Command, words: string): void {
  const example = EXAMPLES[words];
  if (example !== undefined) command.addHelpText("before", `Example: ${example}\n`);
  let isAll = false;
  command.configureHelp({
    visibleOptions(one) {
      const usual = one.options.filter((option) => !option.hidden && (isAll || option.helpGroupHeading !== RARE));
      return [...usual, new Option("-h, --help", "print this")];
    },
    optionDescription(option) {
      return meaningOf(this as Help, option);
    },
  });
  const rare = command.options.filter((option) => !option.hidden && option.helpGroupHeading === RARE).length;
  const meaning = rare === 0 ? "print the same" : `print ${rare} rare options too`;
  command.addOption(new Option(HELP_ALL, meaning).helpGroup(COMMON));
  command.on(`option:${HELP_ALL.slice(2)}`, () => {
    isAll = true;
    command.help();
  });
}
