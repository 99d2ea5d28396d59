/**
 * What `gnomon simulate` costs from the command line to its table: CPU of all threads and the most memory, for the prompts
 * that bench/simulate.ts has, 16 engines and 160 requests a second, under two profiles. How often gauges are read is
 * stated, since that is most of the events under profile weighted: what profiles ask for by themselves differs between
 * versions.
 *
 *     npx node bench/simulate-command.ts [--requests 100000 --requests 1000000] [--rounds 3] [--beside FOLDER]
 *
 * --beside is another checkout (with its node_modules), run in turns with this one. Medians, the lowest, and the median
 * and the lowest of the ratios of this one to the other, round by round.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { median } from "./median.ts";
import { sharedPrefixes } from "./simulate/shared-prefixes.ts";

const HERE = resolve(import.meta.dirname, "..");
const REPORT = join(import.meta.dirname, "simulate/report-usage.ts");
const SPEC = sharedPrefixes(10_000_000, 160);

/** Profiles, and milliseconds between two scrapes of an engine. */
const RUNS = [
  ["weighted", 50],
  ["weighted", 1000],
  ["gnomon", 1000],
] as const;

interface Usage {
  readonly cpuSeconds: number;
  readonly megabytes: number;
}

const { values } = parseArgs({
  options: {
    requests: { type: "string", multiple: true },
    rounds: { type: "string" },
    beside: { type: "string" },
  },
});
const roots = [HERE, ...(values.beside === undefined ? [] : [resolve(values.beside)])];
const folder = mkdtempSync(join(tmpdir(), "gnomon-simulate-"));
const spec = join(folder, "workload.yaml");

try {
  writeFileSync(spec, SPEC);
  process.stdout.write("requests  profile   gauges ms  checkout   CPU s  lowest      MB\n");
  for (const requests of values.requests ?? ["100000", "1000000"])
    for (const [profile, millis] of RUNS) measure(requests, profile, millis);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function measure(requests: string, profile: string, millis: number): void {
  const all = new Map<string, Usage[]>(roots.map((root) => [root, []]));
  for (let round = 0; round < Number(values.rounds ?? 3); round++)
    for (const root of roots) all.get(root)!.push(usageOf(root, requests, profile, millis));
  const head = `${requests.padStart(8)}  ${profile.padEnd(10)}${String(millis).padStart(9)}  `;
  for (const [root, usages] of all) {
    const cpu = usages.map((one) => one.cpuSeconds);
    const megabytes = median(usages.map((one) => one.megabytes));
    const name = root === HERE ? "here" : "beside";
    const figures = `${two(median(cpu)).padStart(7)}${two(Math.min(...cpu)).padStart(8)}${megabytes.toFixed(0).padStart(8)}`;
    process.stdout.write(`${head}${name.padEnd(9)}${figures}\n`);
  }
  const [here = [], beside] = [...all.values()];
  if (beside === undefined) return;
  const ratios = here.map(({ cpuSeconds }, round) => cpuSeconds / beside[round]!.cpuSeconds);
  process.stdout.write(
    `${head}${"ratio".padEnd(9)}${two(median(ratios)).padStart(7)}${two(Math.min(...ratios)).padStart(8)}\n`,
  );
}

function two(figure: number): string {
  return figure.toFixed(2);
}

function usageOf(root: string, requests: string, profile: string, millis: number): Usage {
  const workload = ["--workload-spec", spec, "--num-requests", requests, "--num-instances", "16"];
  const flags = [...workload, "--profile", profile, "--scrape-interval", String(millis)];
  const command = ["--import", REPORT, join(root, "bin/gnomon.js"), "simulate", ...flags];
  const { stderr, status } = spawnSync(process.execPath, command, { encoding: "utf8" });
  const usage = /^usage (.*)$/m.exec(stderr)?.[1];
  if (status !== 0 || usage === undefined) throw new Error(`${command.join(" ")} failed: ${stderr}`);
  return JSON.parse(usage) as Usage;
}
