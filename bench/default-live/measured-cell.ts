import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DriveReport } from "#drive/report.ts";
import { Program } from "../closed-loop/program.ts";
import type { Column } from "../default-choice/cell.ts";
import { STALE_AFTER_INTERVALS } from "../profiles/case.ts";
import { cellFigures } from "./cell-figures.ts";
import type { LiveCase } from "./live-case.ts";
import { type LiveFleet, MODEL } from "./live-fleet.ts";
import { WARM_UP_REQUESTS } from "./live-workload.ts";
import { scrapeMillisOf } from "./predicted-cell.ts";

export interface Measuring {
  readonly fleet: LiveFleet;
  readonly workload: string;
  /** Of the gateway. */
  readonly port: number;
  readonly folder: string;
  /** Gives the same blocks other tokens, so that what engines have cached of an earlier run is of no use. */
  readonly promptSeed: number;
  /** Of the workload's first ones; all where it is left out. */
  readonly requestsMax?: number;
}

/** Whether the machine kept up: milliseconds of the wall clock, and shares of the run. */
export interface Machine {
  readonly stepsLateMean: number;
  readonly sentLateP99: number;
  readonly gatewayBusy: number;
  readonly gatewayStarved: number;
  readonly fleetBusy: number;
  readonly fleetStarved: number;
  readonly failed: number;
}

/** One line of `gnomon drive --requests-out`, microseconds of the wall clock. */
interface Driven {
  readonly index: number;
  readonly outcome: string;
  readonly sentMicros: number;
  readonly firstTokenMicros: number;
  readonly endMicros: number;
  readonly completionTokens: number;
}

/** A fresh gateway with the policy before the fleet, and the workload through it; times as the engines' clock has them. */
export async function measuredCell(
  one: LiveCase,
  policy: string,
  { fleet, workload, port, folder, promptSeed, requestsMax }: Measuring,
): Promise<{ readonly figures: Record<Column, number>; readonly machine: Machine }> {
  const scrapeMillis = scrapeMillisOf(one, policy);
  const set = [
    `scrape.intervalMillis=${scrapeMillis}`,
    `scrape.staleAfterMillis=${STALE_AFTER_INTERVALS * scrapeMillis}`,
  ];
  const gateway = await Program.start(
    {
      command: "serve",
      flags: { endpoint: fleet.urls, port, profile: policy, seed: 1, "log-level": "warn", set },
    },
    "gnomon is ready",
  );
  try {
    const [json, lines] = ["report.json", "requests.jsonl"].map((name) => join(folder, name)) as [string, string];
    const before = [gateway.coreSeconds(), fleet.coreSeconds(), await fleet.lateness()] as const;
    // Failed requests are a figure.
    await Program.run(
      {
        command: "drive",
        flags: {
          url: `http://127.0.0.1:${port}`,
          trace: workload,
          model: MODEL,
          seed: promptSeed,
          "time-scale": 1 / one.timeScale,
          "prompt-form": "tokens",
          concurrency: 4_096,
          "active-sessions": 100_000,
          "drain-seconds": 60,
          json,
          "requests-out": lines,
          ...(requestsMax !== undefined && { limit: requestsMax }),
        },
      },
      [0, 1],
    );
    const after = [gateway.coreSeconds(), fleet.coreSeconds(), await fleet.lateness()] as const;
    const { seconds, drift } = JSON.parse(readFileSync(json, "utf8")) as DriveReport;
    const share = (which: 0 | 1, what: "ran" | "waited"): number =>
      (after[which][what] - before[which][what]) / seconds;
    const { figures, failed } = figuresOf(lines, one.timeScale);
    return {
      figures,
      machine: {
        stepsLateMean: (after[2].millis - before[2].millis) / (after[2].steps - before[2].steps),
        sentLateP99: drift.millis.p99 ?? 0,
        gatewayBusy: share(0, "ran"),
        gatewayStarved: share(0, "waited"),
        fleetBusy: share(1, "ran"),
        fleetStarved: share(1, "waited"),
        failed,
      },
    };
  } finally {
    await gateway.stop();
  }
}

function figuresOf(file: string, timeScale: number): { figures: Record<Column, number>; failed: number } {
  const all = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Driven);
  const sent = all.filter(({ index }) => index >= WARM_UP_REQUESTS);
  const answered = sent
    .filter(({ outcome }) => outcome === "ok")
    .map(({ sentMicros, firstTokenMicros, endMicros, completionTokens }) => ({
      ttftMicros: (firstTokenMicros - sentMicros) * timeScale,
      e2eMicros: (endMicros - sentMicros) * timeScale,
      outputTokens: completionTokens,
    }));
  return { figures: cellFigures(answered, sent.length), failed: sent.length - answered.length };
}
