import { Command } from "commander";
import type { AutopilotOutcome, AutopilotView, ProposalView } from "#live/admin/autopilot-admin.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { callAdmin, type GatewayFlags } from "../admin/admin-client.ts";
import { gatewayOptions } from "../admin/gateway-options.ts";
import { percentOf, signedPercentOf } from "../output/figure-text.ts";

/** Better policies that a running gateway's shadow proposes. */
export function autopilotCommand(): Command {
  const command = new Command("autopilot").description(
    "Show what a running gateway's shadow proposes, and accept or decline it. Needs its admin token.",
  );
  command.addCommand(
    gatewayOptions(new Command("status"))
      .description("Show searches and proposals.")
      .option("--json", "print JSON")
      .action(async (flags: GatewayFlags & { json?: boolean }) => {
        const view = (await callAdmin(flags, { method: "GET", path: "/autopilot" })) as AutopilotView;
        print(flags.json === true ? JSON.stringify(view) : statusText(view));
      }),
  );
  command.addCommand(answerCommand("accept", "Start the rollout of a proposal."));
  command.addCommand(answerCommand("decline", "Decline a proposal; it is not made again under this policy."));
  return command;
}

function answerCommand(answer: "accept" | "decline", description: string): Command {
  return gatewayOptions(new Command(answer))
    .description(description)
    .argument("<name>", "the proposal")
    .option("--by <name>", "your name, for the history", process.env["USER"] ?? "")
    .action(async (name: string, { by, ...flags }: GatewayFlags & { by?: string }) => {
      const path = `/autopilot/${encodeURIComponent(name)}/${answer}`;
      const call = { method: "POST", path, ...(by !== undefined && { by }) } as const;
      const outcome = (await callAdmin(flags, call)) as AutopilotOutcome;
      if (outcome.outcome === "refused") throw new CommandFailure(outcome.problems.join("; "));
      print(proposalText(outcome.proposal));
    });
}

function statusText({ start, searches, latest, latestAt, started, proposals }: AutopilotView): string {
  const counts = Object.entries(searches).map(([outcome, count]) => `${count} ${outcome}`);
  const how = start === "alone" ? "one that is surely better starts by itself" : "a proposal waits for a yes";
  return [
    `searches: ${counts.join(", ")}; ${started} rollouts started; ${how}`,
    ...(latest === "" ? [] : [`latest, ${latestAt}: ${latest}`]),
    ...proposals.map(proposalText),
  ].join("\n");
}

function proposalText(one: ProposalView): string {
  const gain = `${signedPercentOf(one.gain)} (${percentOf(one.gainLow)} to ${percentOf(one.gainHigh)})`;
  const who = one.by === "" ? "" : ` by ${one.by}`;
  const detail = one.detail === "" ? "" : `: ${one.detail}`;
  return `${one.name}, ${one.state}${who}${detail}: ${one.objective} ${gain} over ${one.inForce}, judged on ${one.sessions} conversations`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
