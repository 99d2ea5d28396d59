import { readFileSync } from "node:fs";
import { Command } from "commander";
import { decisionView } from "#live/status/status-view.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile } from "#config/profile-file.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { decisionTable } from "./decision-table.ts";
import { decideState, stateOf } from "./explain-state.ts";
import { isAskedBy } from "../flag/asked-request.ts";
import { type Given, textOf } from "../flag/key-flags.ts";
import { tracedViews } from "./traced-views.ts";

const STDIN = 0;

const STATE_HELP = `A state is a request and the endpoints as the router sees them. Only promptTokens and the ids are needed; a load
that is left out was never scraped, and everything else that is left out is zero or unknown:

  {"request": {"promptTokens": 1000, "model": "m", "session": "s1", "tenant": "t1"},
   "endpoints": [
     {"id": "a", "load": {"running": 3, "waiting": 1, "kvUtilization": 0.4}, "ageMillis": 200, "hitTokens": 640},
     {"id": "b", "requestsInFlight": 2, "prefillTokensQueued": 800, "promptTokensInFlight": 3000, "ttftMillis": 90,
      "tpotMillis": 12, "labels": {"capacity": "2"}, "kvCapacityTokens": 400000, "concurrencyMax": 256}]}

A live decision:  curl -s 127.0.0.1:8081/gnomon/decisions?n=1 | gnomon explain --decision -
A recorded one:   gnomon explain --trace traces/today --request ID
`;

/** Shows how a profile comes to its choice, in a state of one's own or in a decision that a gateway made or recorded. */
export function explainCommand(): Command {
  return new Command("explain")
    .description(
      "Show the table behind a decision: what each filter removed, each scorer's values, totals and ties, what was expected and what came.",
    )
    .option("--profile <name>", `profile to decide with, by name, or the path of ${PROFILE_FILES}`, "gnomon")
    .option("--state <file>", "JSON with a request and endpoints to choose from; - is standard input")
    .option("--decision <file>", "JSON of /gnomon/decisions instead, of one decision or of many; - is standard input")
    .option("--trace <path>", "a recorded trace instead, its last decision or all of one request")
    .option("--request <id>", "the request of that trace, or of those decisions, by its answer's x-request-id or id")
    .option("--json", "print JSON in the form of /gnomon/decisions")
    .addHelpText("after", `\n${STATE_HELP}`)
    .action(async (given: Given) => {
      const [state, decision, trace] = ["state", "decision", "trace"].map((key) => textOf(given, key));
      const request = textOf(given, "request");
      const files = [state, decision, trace].filter((file) => file !== undefined);
      if (files.length !== 1) {
        throw new ConfigError([
          `explain: expected one of --state, --decision and --trace, got ${files.length}; --help shows a state`,
        ]);
      }
      if (request !== undefined && state !== undefined) {
        throw new ConfigError(["explain: expected --trace or --decision beside --request, got --state"]);
      }
      const file = files[0]!;
      const views =
        trace !== undefined
          ? await tracedViews(trace, request)
          : state !== undefined
            ? [stateView(textOf(given, "profile") ?? "gnomon", readJson(file), file)]
            : askedFor(request, viewsIn(readJson(file), file), file);
      for (const view of views) {
        process.stdout.write(given["json"] === true ? `${JSON.stringify(view)}\n` : decisionTable(view, file));
      }
    });
}

function stateView(profile: string, value: unknown, file: string): unknown {
  const state = stateOf(value, file);
  const decision = decideState(loadProfile(profile), state);
  const { model, promptTokens } = state.request;
  return decisionView({ decision, model, promptTokens, promptTokensExact: true, decisionMicros: 0, came: {} });
}

/** A page of /gnomon/decisions holds many; a line of a log holds one; what a gateway answers in its place, an error. */
function viewsIn(value: unknown, file: string): readonly unknown[] {
  const refusal = refusalIn(value);
  if (refusal !== undefined) {
    const where = file === "-" ? "standard input" : file;
    throw new ConfigError([`explain: expected decisions in ${where}, got a gateway's error: ${refusal}`]);
  }
  if (value === null || typeof value !== "object" || !("decisions" in value)) return [value];
  return Array.isArray(value.decisions) ? value.decisions : [value];
}

function refusalIn(value: unknown): string | undefined {
  const { error } = (value ?? {}) as { readonly error?: { readonly message?: unknown } };
  return typeof error?.message === "string" ? error.message : undefined;
}

function askedFor(request: string | undefined, views: readonly unknown[], file: string): readonly unknown[] {
  if (request === undefined) return views;
  const isAsked = isAskedBy(request);
  const found = views.filter((view) => isAsked(String((view as { readonly requestId?: unknown } | null)?.requestId)));
  if (found.length > 0) return found;
  const where = file === "-" ? "standard input" : file;
  throw new ConfigError([`explain: expected a decision on request ${request} in ${where}, got ${views.length} others`]);
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file === "-" ? STDIN : file, "utf8")) as unknown;
  } catch (error) {
    const why = error instanceof SyntaxError ? "it is not JSON" : "it cannot be read";
    const name = file === "-" ? "standard input" : file;
    throw new ConfigError([`explain: expected a file of JSON, got ${name}: ${why}`]);
  }
}
