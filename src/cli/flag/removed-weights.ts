import { CommanderError, Option } from "commander";
import { EXIT_USAGE } from "../output/exit-code.ts";

const SCORERS_EXAMPLE = '--routing-scorers "prefix-affinity:3,queue-depth:2,kv-utilization:2"';

/** Flags that the weighted policy had before it was made of scorers; whoever gives one is given its successor's name. */
export function removedWeights(): readonly Option[] {
  return ["--routing-cache-weight <weight>", "--routing-load-weight <weight>"].map((flags) =>
    removedOption(new Option(flags), SCORERS_EXAMPLE),
  );
}

/** Refuses an option that existed once, naming what replaced it. */
function removedOption(option: Option, successor: string): Option {
  return option.hideHelp().argParser(() => {
    throw new CommanderError(EXIT_USAGE, "gnomon.removedOption", `${option.long} was removed; use ${successor}`);
  });
}
