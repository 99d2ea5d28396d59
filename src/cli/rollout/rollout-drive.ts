import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Command, InvalidArgumentError } from "commander";
import type { RolloutReply } from "#live/admin/rollout-admin.ts";
import type { RolloutsView, RolloutView } from "#live/admin/rollout-view.ts";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { callAdmin, type GatewayFlags, warnUnkept } from "../admin/admin-client.ts";
import { gatewayOptions } from "../admin/gateway-options.ts";
import { rolloutLine, rolloutReport, rolloutTable } from "./rollout-text.ts";

interface StepFlags extends GatewayFlags {
  readonly by?: string;
  readonly reason?: string;
}

interface StartFlags extends GatewayFlags {
  readonly by?: string;
  readonly dryRun?: boolean;
  readonly watch?: boolean;
}

const STDIN = 0;
const WATCH_MILLIS = 1000;
const AWAY_MILLIS_MAX = 120_000;

/** Commands that drive the rollouts of a running gateway. */
export function driveCommands(): Command[] {
  return [
    startCommand(),
    statusCommand(),
    stepCommand("pause", "Route everything by the control and count nothing until the rollout is resumed."),
    stepCommand("resume", "Resume a paused rollout."),
    stepCommand("advance", "Take the next step of a canary now."),
    promoteCommand(),
    stepCommand("rollback", "End a rollout and route by the policy as before."),
    reportCommand(),
    removeCommand(),
  ];
}

function startCommand(): Command {
  return gatewayOptions(new Command("start"))
    .description("Start a rollout on live traffic.")
    .argument("<file>", "YAML or JSON, as an entry of the configuration's rollout.start; - for standard input")
    .option("--by <name>", "your name, for the history", process.env["USER"] ?? "")
    .option("--dry-run", "check, but start nothing")
    .option("--watch", "show its progress until it ends")
    .action(async (file: string, flags: StartFlags) => {
      const body = readFileSync(file === "-" ? STDIN : file, "utf8");
      const path = flags.dryRun === true ? "/rollout?dry-run=true" : "/rollout";
      const outcome = (await callAdmin(flags, { method: "POST", path, body, ...by(flags) })) as RolloutReply;
      if (outcome.outcome !== "applied") return print("it could be started; nothing was changed");
      printApplied(outcome);
      if (flags.watch === true) await watch(flags, outcome.rollout.name);
    });
}

function statusCommand(): Command {
  return gatewayOptions(new Command("status"))
    .description("Show the rollouts of a gateway, or everything about one.")
    .argument("[name]", "its name; all of them without one")
    .option("--json", "print JSON")
    .option("--watch", "keep showing a rollout until it ends")
    .action(async (name: string | undefined, flags: GatewayFlags & { json?: boolean; watch?: boolean }) => {
      if (name === undefined) {
        if (flags.watch === true) throw new ConfigError(["--watch: expected the name of a rollout"]);
        const view = (await callAdmin(flags, { method: "GET", path: "/rollout" })) as RolloutsView;
        if (flags.json === true) return print(JSON.stringify(view));
        return print(view.rollouts.length === 0 ? "there is no rollout" : view.rollouts.map(rolloutLine).join("\n"));
      }
      if (flags.watch === true) return watch(flags, name);
      const rollout = await viewOf(flags, name);
      print(flags.json === true ? JSON.stringify(rollout) : rolloutTable(rollout));
    });
}

function stepCommand(step: string, description: string): Command {
  return stepOptions(new Command(step))
    .description(description)
    .argument("<name>", "its name")
    .action((name: string, flags: StepFlags) => make(flags, name, step, {}));
}

function promoteCommand(): Command {
  return stepOptions(new Command("promote"))
    .description("End a rollout and make an arm's profile the policy's, under a new version.")
    .argument("<name>", "its name")
    .requiredOption("--arm <name>", "the arm to promote")
    .option("--even-so", "also one that had no request, or that is measured or predicted to be worse")
    .action((name: string, flags: StepFlags & { arm: string; evenSo?: boolean }) =>
      make(flags, name, "promote", { arm: flags.arm, ...(flags.evenSo === true && { evenSo: true }) }),
    );
}

function reportCommand(): Command {
  return gatewayOptions(new Command("report"))
    .description("Print what a rollout found, as Markdown.")
    .argument("<name>", "its name")
    .action(async (name: string, flags: GatewayFlags) => print(rolloutReport(await viewOf(flags, name))));
}

function removeCommand(): Command {
  return stepOptions(new Command("remove"))
    .description("Forget a rollout that has ended.")
    .argument("<name>", "its name")
    .action(async (name: string, flags: StepFlags) => {
      await callAdmin(flags, { method: "DELETE", path: pathOf(name), ...by(flags) });
      print(`${name} is forgotten`);
    });
}

async function make(
  flags: StepFlags,
  name: string,
  step: string,
  more: { readonly arm?: string; readonly evenSo?: boolean },
): Promise<void> {
  const body = JSON.stringify({ ...more, ...(flags.reason !== undefined && { reason: flags.reason }) });
  const path = `${pathOf(name)}/${step}`;
  const outcome = (await callAdmin(flags, { method: "POST", path, body, ...by(flags) })) as RolloutReply;
  if (outcome.outcome === "applied") printApplied(outcome);
}

function printApplied({ rollout, unkept }: Extract<RolloutReply, { readonly outcome: "applied" }>): void {
  print(rolloutLine(rollout));
  warnUnkept(unkept);
}

/** A line for everything that changes, until it has ended. A gateway that starts again meanwhile is waited for. */
async function watch(flags: GatewayFlags, name: string): Promise<void> {
  let shown = "";
  let awaySince: number | undefined;
  for (;;) {
    let rollout;
    try {
      rollout = await viewOf(flags, name);
    } catch (error) {
      awaySince ??= performance.now();
      if (!(error instanceof CommandFailure) || performance.now() - awaySince > AWAY_MILLIS_MAX) throw error;
      const line = `${error.message}; waiting for it`;
      if (line !== shown) process.stderr.write(`${line}\n`);
      shown = line;
      await sleep(WATCH_MILLIS);
      continue;
    }
    awaySince = undefined;
    const line = rolloutLine(rollout);
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${line}`);
    else if (line !== shown) print(line);
    shown = line;
    if (rollout.phase === "promoted" || rollout.phase === "rolled-back") break;
    await sleep(WATCH_MILLIS);
  }
  if (process.stdout.isTTY) process.stdout.write("\n");
}

async function viewOf(flags: GatewayFlags, name: string): Promise<RolloutView> {
  return (await callAdmin(flags, { method: "GET", path: pathOf(name) })) as RolloutView;
}

function pathOf(name: string): string {
  if (name === "") throw new InvalidArgumentError("expected the name of a rollout");
  return `/rollout/${encodeURIComponent(name)}`;
}

function stepOptions(command: Command): Command {
  return gatewayOptions(command)
    .option("--by <name>", "your name, for the history", process.env["USER"] ?? "")
    .option("--reason <text>", "reason, for the history");
}

function by(flags: { readonly by?: string }): { readonly by?: string } {
  return flags.by === undefined ? {} : { by: flags.by };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
