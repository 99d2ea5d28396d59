import { RARE, rareOption } from "#drive/rare-option.ts";
import { type Command, Option } from "commander";
import { CONVERSATIONS } from "#shadow/recorded/conversations.ts";
import { addSizeFlags } from "../calibrate/engine-sizes.ts";
import { amountFlag, shareFlag, whole } from "../flag/flag-number.ts";
import {
  ENDPOINTS_MAX,
  LIMIT_DEFAULT,
  RATE_SCALE_MAX,
  RATE_SCALE_MIN,
  SCRAPE_MEANING,
  SCRAPE_MILLIS_MAX,
} from "../what-if/what-if-flags.ts";

/** Where the traffic comes from and what it is simulated on. */
export function addTrafficFlags(command: Command): Command {
  addSizeFlags(command);
  return command
    .addOption(
      rareOption("--in-force <name>", "profile that the traffic was routed by (default: the trace's own, else gnomon)"),
    )
    .addOption(
      new Option("--engine <file>", "engine by name or path, ideally one written by calibrate")
        .argParser((name: string) => [name])
        .default([], "as what-if chooses it"),
    )
    .addOption(
      new Option("--endpoints <n>", "for a foreign workload: number of endpoints")
        .argParser(one(whole(1, ENDPOINTS_MAX)))
        .default([], "4"),
    )
    .addOption(
      new Option("--rate-scale <x>", "for a foreign workload: factor on the arrival rate")
        .argParser(one(amountFlag(RATE_SCALE_MIN, RATE_SCALE_MAX)))
        .default([], "1")
        .helpGroup(RARE),
    )
    .addOption(rareOption("--capped <turns>", "keep only the first turns of each conversation", whole(1, Infinity)))
    .addOption(
      new Option("--conversations <kind>", "which turns wait for the previous one, as for what-if")
        .choices(CONVERSATIONS)
        .default(CONVERSATIONS[0])
        .helpGroup(RARE),
    )
    .addOption(
      rareOption("--limit <n>", "maximum number of requests, the first to arrive", whole(1, Infinity), LIMIT_DEFAULT),
    )
    .addOption(
      rareOption(
        "--step-error <share>",
        "standard error of all step times, for an engine without residuals",
        shareFlag,
      ),
    )
    .addOption(rareOption("--scrape-interval <millis>", SCRAPE_MEANING, amountFlag(1, SCRAPE_MILLIS_MAX)))
    .addOption(
      rareOption(
        "--request-delay <micros>",
        "time from the decision until the engine has the request",
        whole(0, 1e9),
        0,
      ),
    )
    .addOption(
      rareOption("--answer-delay <micros>", "time from the engine until the client has a token", whole(0, 1e9), 0),
    )
    .addOption(
      rareOption(
        "--seed <n>",
        "seed of the router's draws if the trace has none, and of the arms",
        whole(0, Infinity),
        0,
      ),
    );
}

function one(parse: (text: string) => number): (text: string) => readonly number[] {
  return (text) => [parse(text)];
}
