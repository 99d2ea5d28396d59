import { type Command, Option } from "commander";

/*
 * One rule for all commands: `-o, --output FILE` is where what the command makes is written, `--json` prints its answer
 * as JSON in place of the table. Names that options had before stay, and are not in the help.
 */

const OUTPUT = "output";
const JSON_FILE = "--json-file";

interface Also {
  /** The option by which the command's action knows the file. */
  readonly as?: string;
  /** What it was called before, such as `--write`. */
  readonly before?: readonly string[];
}

export function addOutput(command: Command, meaning: string, { as = OUTPUT, before = [] }: Also = {}): void {
  const set = (file: string): unknown => command.setOptionValue(as, file);
  command.option("-o, --output <file>", meaning);
  command.on(`option:${OUTPUT}`, set);
  for (const flag of before) {
    command.addOption(new Option(`${flag} <file>`).hideHelp());
    command.on(`option:${flag.slice(2)}`, set);
  }
}

/** Its value is "-", or the file of the older `--json FILE`. */
export function addJson(command: Command, meaning: string): void {
  command.addOption(new Option("--json", meaning).preset("-"));
  command.addOption(new Option(`${JSON_FILE} <file>`).hideHelp());
  command.on(`option:${JSON_FILE.slice(2)}`, (file: string) => command.setOptionValue("json", file));
}

/** `--json FILE.json`, `--json -` and `--json=FILE`, as they were once written, in today's words. */
export function withJsonFile(argv: readonly string[]): string[] {
  const words: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [word = "", next] = argv.slice(i, i + 2);
    const isFile = next !== undefined && (next === "-" || next.endsWith(".json"));
    if (word === "--") return [...words, ...argv.slice(i)];
    if (word.startsWith("--json=")) words.push(word.replace("--json", JSON_FILE));
    else if (word !== "--json" || !isFile) words.push(word);
    else {
      words.push(JSON_FILE, next);
      i++;
    }
  }
  return words;
}

/** Whether a command's `--json` once took a file. */
export function hadJsonFile(command: Command): boolean {
  return command.options.some(({ long }) => long === JSON_FILE);
}
