import { Command, CommanderError } from "commander";
import { hadJsonFile, withJsonFile } from "#drive/output-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { unknownWord } from "#config/problem.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { Interrupted } from "#serve/process/interrupted.ts";
import { EXIT_FAILURE, EXIT_USAGE } from "./output/exit-code.ts";
import { addHelp, programHelp, wholeHelp } from "./command-help.ts";

/** The root command; its help is one screen, and --help-all describes every command with every option. */
export function createProgram(version: string, commands: readonly Command[]): Command {
  const program = new Command("gnomon");
  program.version(version, "-V, --version", "print the version");
  program.exitOverride();
  // What follows a command's name is that command's.
  program.enablePositionalOptions();
  program.configureOutput({ outputError: () => {} });
  for (const command of commands) {
    command.copyInheritedSettings(program);
    command.enablePositionalOptions();
    for (const nested of command.commands) {
      nested.copyInheritedSettings(command);
      addHelp(nested, `${command.name()} ${nested.name()}`);
    }
    addHelp(command, command.name());
    program.addCommand(command, { isDefault: command.name() === "serve" });
  }
  let isAll = false;
  program.configureHelp({ formatHelp: (_, help) => (isAll ? wholeHelp(commands, help) : programHelp()) });
  program.option("--help-all", "print every option of every command");
  program.on("option:help-all", () => {
    isAll = true;
    program.help();
  });
  return program;
}

/** Runs the command line; resolves with the exit code once the command is over. */
export async function run(
  program: Command,
  argv: readonly string[],
  complain: (line: string) => void,
): Promise<number> {
  try {
    await program.parseAsync(readWords(program, argv), { from: "user" });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.code.startsWith("gnomon.")) {
        complain(error.message);
        return error.exitCode;
      }
      if (error.exitCode === 0 || error.code === "commander.help") return error.exitCode === 0 ? 0 : EXIT_USAGE;
      complain(usageMessage(error, program, argv));
      return EXIT_USAGE;
    }
    if (error instanceof ConfigError) {
      for (const line of error.lines) complain(line);
      return EXIT_USAGE;
    }
    if (error instanceof CommandFailure) {
      complain(error.message);
      return EXIT_FAILURE;
    }
    if (error instanceof Interrupted) {
      complain(error.message);
      return error.exitCode;
    }
    // A file that the system refused: its message names the file and the reason.
    if (error instanceof Error && "syscall" in error && "path" in error) {
      complain(`${String(error.path)}: ${error.message.replace(/^[A-Z0-9]+: /, "").replace(/, \w+( '.*')?$/, "")}`);
      return EXIT_FAILURE;
    }
    throw error;
  }
}

/** As they are, or in today's words where the command that they name had other ones. */
function readWords(program: Command, argv: readonly string[]): readonly string[] {
  let command: Command | undefined;
  for (const word of argv) {
    const below: Command | undefined = (command ?? program).commands.find((one) => one.name() === word);
    if (below === undefined) break;
    command = below;
  }
  return command !== undefined && hadJsonFile(command) ? withJsonFile(argv) : argv;
}

/** What was given wrongly; a first word that is no command is reported so, though it reached the default command. */
function usageMessage(error: CommanderError, program: Command, argv: readonly string[]): string {
  const [word] = argv;
  const names = program.commands.map((command) => command.name());
  if (
    error.code === "commander.excessArguments" &&
    word !== undefined &&
    !names.includes(word) &&
    !word.startsWith("-")
  ) {
    return unknownWord("command", word, names);
  }
  if (error.code === "commander.unknownCommand") {
    const parent = program.commands.find((command) => command.name() === word);
    const below = parent?.commands.map((command) => command.name()) ?? [];
    const given = /'(.*)'/.exec(error.message)?.[1];
    if (given !== undefined && below.length > 0) return unknownWord("command", given, below);
  }
  return error.message.replace(/^error: /, "");
}
