import { readFileSync } from "node:fs";
import { Command, Option } from "commander";
import { stringify } from "yaml";
import { ConfigError } from "#config/config-error.ts";
import { isPlain, patchBetween } from "#config/merge-patch.ts";
import { type Override, applyOverrides, overrideFromText } from "#config/override.ts";
import { problemLine } from "#config/problem.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { schemaNode } from "#config/schema-node.ts";
import type { PolicyHistory, PolicyOutcome, PolicyView } from "#live/admin/policy-admin.ts";
import { historyTable } from "./policy-table.ts";
import { type GatewayFlags, callAdmin, warnUnkept } from "../admin/admin-client.ts";
import { repeated } from "../flag/list-flag.ts";
import { gatewayOptions } from "../admin/gateway-options.ts";

interface ChangeFlags extends GatewayFlags {
  readonly by?: string;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly ifVersion?: string;
}

interface SetFlags extends ChangeFlags {
  readonly replace?: boolean;
  readonly set?: readonly string[];
}

/** Shows and changes the policy of a running gateway. */
export function policyCommand(): Command {
  const command = new Command("policy").description(
    "Show and change the policy of a running gateway: profiles, weights, routing, limits. Needs its admin token.",
  );
  for (const part of [getCommand(), setCommand(), historyCommand(), rollbackCommand()]) command.addCommand(part);
  return command;
}

function getCommand(): Command {
  return gatewayOptions(new Command("get"))
    .description("Print the policy in force, as a file for `policy set`; with --replace what is taken out of it goes.")
    .option("--version-number <version>", "an earlier version, instead of the one in force")
    .option("--json", "print everything about it as JSON")
    .action(async (flags: GatewayFlags & { versionNumber?: string; json?: boolean }) => {
      const below = flags.versionNumber === undefined ? "" : `?version=${encodeURIComponent(flags.versionNumber)}`;
      const view = (await callAdmin(flags, { method: "GET", path: `/policy${below}` })) as PolicyView;
      if (flags.json === true) return void process.stdout.write(`${JSON.stringify(view)}\n`);
      const from = [view.source, view.by, view.note].filter((text) => text !== "").join(", ");
      process.stdout.write(`# version ${view.version}, ${view.at}, from ${from}\n${stringify(view.document)}`);
    });
}

function setCommand(): Command {
  return changeOptions(new Command("set"))
    .description("Change the policy by a file or key by key, and show what that changes. What is left out stays.")
    .argument(
      "[file]",
      "YAML or JSON with routing, profiles, admission, limits; null removes a key; - for standard input",
    )
    .option("--replace", "take the file as the whole policy: what it leaves out is as the configuration has it")
    .addOption(new Option("--merge", "the default").conflicts("replace").hideHelp())
    .option(
      "--set <key=value>",
      "set one key, for example routing.profile=llm-d or limits.attemptsMax=2, or take it away by null; repeat for more",
      repeated,
    )
    .action(async (file: string | undefined, flags: SetFlags) => {
      const set = flags.set ?? [];
      if ((file === undefined) === (set.length === 0)) {
        throw new ConfigError(["policy set: expected a file or --set, and not both"]);
      }
      if (flags.replace === true && file === undefined)
        throw new ConfigError(["--replace: expected together with a file, which it takes as the whole policy"]);
      if (file === undefined) return setKeys(flags, set);
      const body = readFileSync(file === "-" ? STDIN : file, "utf8");
      await change(flags, { method: flags.replace === true ? "PUT" : "PATCH", path: "", body });
    });
}

const STDIN = 0;

/** Puts values in the place of those that are there; a mapping too, which would be merged into it otherwise. */
async function setKeys(flags: SetFlags, pairs: readonly string[]): Promise<void> {
  const overrides = overridesOf(pairs);
  if (!overrides.some(({ value }) => isPlain(value))) {
    return change(flags, { method: "PATCH", path: "", body: JSON.stringify(applyOverrides({}, overrides)) });
  }
  const { version, document } = (await callAdmin(flags, { method: "GET", path: "/policy" })) as PolicyView;
  const body = JSON.stringify(patchBetween(document, applyOverrides(document, overrides)));
  // The patch is one for this version alone.
  await change({ ifVersion: String(version), ...flags }, { method: "PATCH", path: "", body });
}

function historyCommand(): Command {
  return gatewayOptions(new Command("history"))
    .description("List earlier versions, and changes that were refused.")
    .option("--json", "print JSON")
    .action(async (flags: GatewayFlags & { json?: boolean }) => {
      const history = (await callAdmin(flags, { method: "GET", path: "/policy/history" })) as PolicyHistory;
      process.stdout.write(flags.json === true ? `${JSON.stringify(history)}\n` : historyTable(history));
    });
}

function rollbackCommand(): Command {
  return changeOptions(new Command("rollback"))
    .description("Put an earlier version into force again, under a new number.")
    .argument("<version>", "its number; policy history lists them")
    .action(async (version: string, flags: ChangeFlags) => {
      if (!/^\d{1,15}$/.test(version))
        throw new ConfigError([`version: expected a number, got ${JSON.stringify(version)}`]);
      await change(flags, { method: "POST", path: "/rollback", body: JSON.stringify({ version: Number(version) }) });
    });
}

function changeOptions(command: Command): Command {
  return gatewayOptions(command)
    .option("--by <name>", "your name, for the history", process.env["USER"] ?? "")
    .option("--dry-run", "check it and show what it would change, but change nothing")
    .option("--force", "roll back rollouts that compare what it changes; they refuse it otherwise")
    .option("--if-version <version>", "refuse unless this version is in force");
}

async function change(
  flags: ChangeFlags,
  { method, path, body }: { readonly method: "PUT" | "PATCH" | "POST"; readonly path: string; readonly body: string },
): Promise<void> {
  const query = new URLSearchParams();
  if (flags.dryRun === true) query.set("dry-run", "true");
  if (flags.force === true) query.set("force", "true");
  if (flags.ifVersion !== undefined) query.set("if-version", flags.ifVersion);
  const below = query.size === 0 ? path : `${path}?${query.toString()}`;
  const by = flags.by === undefined ? {} : { by: flags.by };
  const answer = (await callAdmin(flags, {
    method,
    path: `/policy${below}`,
    body,
    ...by,
  })) as PolicyOutcome;
  process.stdout.write(outcomeText(answer));
  if (answer.outcome === "applied") warnUnkept(answer.unkept);
}

const OUTCOME_TEXTS: Readonly<Record<PolicyOutcome["outcome"], string>> = {
  applied: "in force: version",
  unchanged: "nothing to change, it is what is in force: version",
  checked: "it could be put into force; nothing was changed: version",
  refused: "refused: version",
};
const VALUE_CHARS_MAX = 200;

/** What became of it, and a line for each key that has another value. */
function outcomeText(answer: PolicyOutcome): string {
  const changes = "changes" in answer ? answer.changes : [];
  const isNothing = answer.outcome === "checked" && changes.length === 0;
  const lines = changes.map(({ path, before, after }) => `  ${path}: ${valueText(before)} → ${valueText(after)}\n`);
  const gaveWay = answer.outcome === "applied" ? (answer.gaveWay ?? []) : [];
  lines.push(...gaveWay.map((line) => `  rollout ${line}\n`));
  return `${OUTCOME_TEXTS[isNothing ? "unchanged" : answer.outcome]} ${answer.version}\n${lines.join("")}`;
}

function valueText(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

function overridesOf(pairs: readonly string[]): Override[] {
  const overrides: Override[] = [];
  const lines: string[] = [];
  const root = schemaNode(CONFIG_SCHEMA);
  for (const pair of pairs) {
    const override = overrideFromText(pair, root);
    if ("message" in override) lines.push(problemLine({ path: [], message: `--set: ${override.message}` }));
    else overrides.push(pair.slice(pair.indexOf("=") + 1) === "null" ? { ...override, value: null } : override);
  }
  if (lines.length > 0) throw new ConfigError(lines);
  return overrides;
}
