import { type Command, InvalidArgumentError, Option } from "commander";
import { addOutput } from "#drive/output-option.ts";
import { COMMON, RARE } from "#drive/rare-option.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { ADMISSION_POLICIES } from "#core/admission/create.ts";
import { PRIORITY_POLICIES } from "#core/priority/create.ts";
import { SCALE_POLICIES } from "#core/autoscale/scale-policy.ts";
import { architectureOptions } from "../flag/architecture-flags.ts";
import { autoscaleOptions } from "../flag/autoscale-flags.ts";
import { stageOptions } from "../flag/stage-flags.ts";
import { removedWeights } from "../flag/removed-weights.ts";
import { LOSE_FLAG, LOSE_MEANING, lostEndpoints } from "../flag/lost-endpoint.ts";
import { ROUTERS_MAX, ROUTERS_MEANING, routerOptions } from "../flag/router-flags.ts";
import { setOption } from "./simulated-keys.ts";
import { FITNESS_KEYS } from "#sim/result/fitness.ts";
import { HARDWARE } from "#engine/hardware.ts";
import { stageFileOptions } from "./stage-options.ts";
import { SCHEDULER_POLICIES } from "#engine/config.ts";

import { INSTANCES_DEFAULT } from "./simulate-flags.ts";

export function addSimulateFlags(command: Command): Command {
  const adder = new FlagAdder(command);
  for (const addAll of [
    addClusterFlags,
    addScalingFlags,
    addArchitectureFlags,
    addWorkloadFlags,
    addPolicyFlags,
    addSignalFlags,
    addResultFlags,
  ])
    addAll(adder);
  return command;
}

function addArchitectureFlags(to: FlagAdder): void {
  const meaning =
    "pd: some engines compute prompts and others answer; --num-instances is split in halves, or as the next two options " +
    "state (default: colocated; pd without --profile uses gnomon-pd)";
  for (const option of architectureOptions(meaning)) to.option(option);
}

function addScalingFlags(to: FlagAdder): void {
  to.flag("--autoscaler-enabled", "scale the number of engines with the load, starting from --num-instances");
  to.rare.add(
    "--autoscaler-policy <name>",
    `${SCALE_POLICIES.join(", ")}, optionally with parameters as in a policies file: ` +
      "target-utilization:target_utilization=0.5 (default: the file's, else threshold)",
  );
  for (const option of autoscaleOptions()) to.option(option);
}

function addClusterFlags(to: FlagAdder): void {
  to.number("--num-instances <count>", `engines (default: ${INSTANCES_DEFAULT})`, whole(1, 10_000));
  to.rare.number("--routers <count>", ROUTERS_MEANING, whole(1, ROUTERS_MAX), 1);
  for (const option of routerOptions()) to.option(option);
  to.add("--engine <name>", "engine that comes with gnomon, or the path of an engine file (vLLM's defaults without)");
  for (const option of stageFileOptions()) to.option(option);
  to.rare.add(
    "--model-config <file>",
    "a Hugging Face config.json: step time by a roofline of its kernels, KV blocks by memory, in place of --engine",
  );
  to.rare.flag("--enforce-eager", "with --model-config: the engine runs without CUDA graphs");
  to.rare.option(
    new Option("--no-async-scheduling", "with --model-config: no step is composed ahead (vLLM before 0.14)").default(
      true,
    ),
  );
  to.rare.add(
    "--model <name>",
    "model of an engine that comes with gnomon, in place of --engine; with --hardware if it runs on several boards",
  );
  to.rare.add(
    "--hardware <board>",
    `of --model-config: ${Object.keys(HARDWARE).join(", ")} (H100 without); of --model: as engines are named`,
  );
  to.rare.number("--tp <count>", "boards that an engine uses (tensor parallelism)", whole(1, 1024), 1);
  to.rare.number("--gpu-memory-utilization <share>", "share of a board's memory that an engine uses", positive(1), 0.9);
  to.rare.number(
    "--kv-gpu-blocks <count>",
    "KV blocks of each engine, in place of the engine file's",
    whole(2, 16_777_216),
  );
  to.rare.number("--kv-cpu-blocks <count>", "KV blocks of each engine in the host's memory", whole(1, 16_777_216));
  to.rare.number(
    "--kv-offload-threshold <share>",
    "utilization of the GPU's blocks above which released ones are copied to the host",
    atLeastZero(1),
    0,
  );
  to.rare.number("--kv-block-bytes <bytes>", "size of a block, for the time of a transfer", whole(1, 1e9), 2_097_152);
  to.rare.number("--kv-transfer-bandwidth <bytes>", "per second, between GPU and host", positive(1e15), 2.5e10);
  to.rare.number("--kv-transfer-base <micros>", "of every transfer", atLeastZero(1e9), 10);
  to.list(LOSE_FLAG, LOSE_MEANING, lostEndpoints);
  for (const option of [...stageOptions(), ...removedWeights(), setOption()]) to.option(option);
  const order = "order of an engine's queue (default: the engine's; with priorities priority-fcfs)";
  to.rare.choice("--scheduler <policy>", order, SCHEDULER_POLICIES);
}

function addWorkloadFlags(to: FlagAdder): void {
  to.add("--workload-spec <file>", "YAML specification of a workload, or the name of a bundled one (default: chatbot)");
  to.add(
    "--workload <file>",
    "recorded workload, or a specification, by path or name: the format is detected from its content",
  );
  to.number("--rate <per second>", "arrivals per second, instead of the workload's own", positive(1e6));
  to.number("--rate-scale <factor>", "factor on the arrival rate", within(0.001, 1e6), 1);
  to.number("--num-requests <count>", "stop reading the workload after so many requests", whole(1, 1e9));
  to.rare.number("--horizon <seconds>", "stop the simulated clock there", positive(1e9));
  to.rare.number("--timeout <seconds>", "time after which a client gives up (default: never)", positive(1e9));
  to.number("--seed <integer>", "seed of everything that is drawn", whole(0, Number.MAX_SAFE_INTEGER), 42);
}

function addPolicyFlags(to: FlagAdder): void {
  to.add("--profile <name>", `routing profile by name, or the path of ${PROFILE_FILES}`);
  to.add("--policy-config <file>", "YAML file with admission, priority, routing and scheduler policies");
  to.rare.add("--routing-policy <name>", "weighted, or the name of a profile");
  to.add("--routing-scorers <list>", "name:weight pairs of the weighted policy, comma-separated");
  to.rare.add("--admission-policy <name>", `${ADMISSION_POLICIES.join(", ")}: with its default parameters`);
  to.rare.number(
    "--admission-bucket-size <tokens>",
    "of --admission-policy token-bucket: size of a full bucket",
    positive(1e12),
  );
  to.rare.add("--priority-policy <name>", `${PRIORITY_POLICIES.join(", ")}: with its default parameters`);
}

function addSignalFlags(to: FlagAdder): void {
  to.rare.choice("--signals <mode>", "how gauges reach the router", ["scrape", "at-decision", "oracle"], "scrape");
  const own = "(default: what the profile is made for, as gnomon profiles NAME shows)";
  to.rare.number("--scrape-interval <millis>", `time between two scrapes of an engine ${own}`, within(0.1, 1e7));
  to.rare.number("--scrape-delay <millis>", `time from a scrape until the router has it ${own}`, atLeastZero(1e7));
  to.rare.number("--scrape-loss <share>", "share of scrapes that never arrive", atLeastZero(0.999), 0);
  to.rare.choice(
    "--scrape-phase <phase>",
    "whether engines are scraped at the same time or spread out",
    ["spread", "together"],
    "spread",
  );
  const stale =
    "age above which the router's ledger replaces a scrape (default: 3000, or three intervals if those are longer)";
  to.rare.number("--stale-after <millis>", stale, positive(1e9));
  const indexes = ["approximate", "oracle", "copies", "events"];
  to.rare.choice(
    "--prefix-index <kind>",
    "what the router knows of caches: approximate (its own decisions), oracle (everything), copies (delayed), or events (KV events)",
    indexes,
    "approximate",
  );
  const meaning = "which answers' blocks the router learns, as from token ids (return_token_ids): as recorded, or all";
  to.rare.choice("--answers <kind>", meaning, ["recorded", "known"], "recorded");
  to.rare.number("--cache-signal-delay <millis>", "delay of --prefix-index copies and events", positive(1e7), 50);
  to.rare.number("--admission-latency <micros>", "time from arrival to admission", whole(0, 1e9), 0);
  to.rare.number("--routing-latency <micros>", "time from admission to the decision", whole(0, 1e9), 0);
  to.rare.number("--request-latency <micros>", "time from the decision to the engine", whole(0, 1e9), 0);
  to.rare.number("--answer-latency <micros>", "time from the engine to the client", whole(0, 1e9), 0);
}

function addResultFlags(to: FlagAdder): void {
  to.rare.flag("--token-gaps", "record every gap between tokens (slower)");
  to.rare.flag("--check", "verify the invariants after every step (slower)");
  to.add(
    "--slo <targets>",
    "class:ttft:tpot:e2e in milliseconds, comma-separated; an empty part is no target, * is any class",
  );
  to.rare.add("--fitness-weights <list>", `key:weight pairs, comma-separated; keys ${FITNESS_KEYS.join(", ")}`);
  to.rare.choice("--trace-level <level>", "write every decision into the results", ["none", "decisions"], "none");
  to.rare.number(
    "--counterfactual-k <count>",
    "how many of a decision's other candidates to write and to try",
    whole(0, 100),
    0,
  );
  const retried = "decisions whose other candidates are tried, the rest simulated again (default: up to 50, by size)";
  to.rare.number("--counterfactual-decisions <count>", retried, whole(0, 10_000));
  to.rare.flag("--summarize-trace", "print where requests went and why");
  to.output("write the results there as JSON", { as: "resultsPath", before: ["--results-path"] });
  to.rare.add("--requests-path <file>", "write every request's outcome there, a JSON line each");
  to.flag("--json", "results as JSON on standard output, in place of the table");
}

/** Adds options of a few kinds to a command. */
class FlagAdder {
  readonly #command: Command;
  readonly #group: string;

  constructor(command: Command, group = COMMON) {
    this.#command = command;
    this.#group = group;
  }

  /** Adds options that --help-all alone shows. */
  get rare(): FlagAdder {
    return new FlagAdder(this.#command, RARE);
  }

  add(flags: string, meaning: string): void {
    this.option(new Option(flags, meaning));
  }

  /** One that has no group of its own gets this adder's. */
  option(option: Option): void {
    option.helpGroupHeading ??= this.#group;
    this.#command.addOption(option);
  }

  list<T>(flags: string, meaning: string, add: (text: string, before: readonly T[]) => readonly T[]): void {
    this.option(new Option(flags, meaning).argParser(add).default([], ""));
  }

  output(...given: Parameters<typeof addOutput> extends [Command, ...infer Rest] ? Rest : never): void {
    addOutput(this.#command, ...given);
  }

  flag(flags: string, meaning: string): void {
    this.option(new Option(flags, meaning).default(false));
  }

  number(flags: string, meaning: string, accept: Accept, otherwise?: number): void {
    this.#add(new Option(flags, meaning).argParser(numeric(accept)), otherwise);
  }

  choice(flags: string, meaning: string, values: readonly string[], otherwise?: string): void {
    this.#add(new Option(flags, meaning).choices([...values]), otherwise);
  }

  #add(option: Option, otherwise: number | string | undefined): void {
    this.option(otherwise === undefined ? option : option.default(otherwise));
  }
}

interface Accept {
  readonly text: string;
  readonly holds: (value: number) => boolean;
}

const whole = (min: number, max: number): Accept => ({
  text: `a whole number from ${min} to ${max}`,
  holds: (value) => Number.isInteger(value) && value >= min && value <= max,
});
const positive = (max: number): Accept => ({
  text: `a number above 0 up to ${max}`,
  holds: (value) => value > 0 && value <= max,
});
const within = (min: number, max: number): Accept => ({
  text: `a number from ${min} to ${max}`,
  holds: (value) => value >= min && value <= max,
});
const atLeastZero = (max: number): Accept => ({
  text: `a number from 0 to ${max}`,
  holds: (value) => value >= 0 && value <= max,
});

function numeric({ text, holds }: Accept): (given: string) => number {
  return (given) => {
    const value = given.trim() === "" ? NaN : Number(given);
    if (!holds(value)) throw new InvalidArgumentError(`expected ${text}`);
    return value;
  };
}
