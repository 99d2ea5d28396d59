/**
 * Changes the policy of a gateway under load, by a swapped ConfigMap and by the admin API in turn, with changes between
 * them that must be refused. Ends with exit code 1 where a request failed, a wrong change had an effect, a decision does
 * not name the version in force, or the trace does not replay alike.
 *
 *     npx node bench/policy-changes.ts [--changes 200] [--invalid 20] [--clients 16]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { kept } from "./children.ts";
import { median } from "./median.ts";
import { ConfigMap, type StormResult, policyStorm, traceOfStorm } from "./policy/storm.ts";

const TOKEN = "bench";

async function main(changes: number, invalid: number, clients: number): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-policy-changes-"));
  try {
    const trace = join(directory, "trace");
    const fixed = {
      listen: { port: 0 },
      admin: { tokenEnv: "BENCH_TOKEN" },
      policy: { watchMillis: 20, historyMax: 2 * changes + 2 },
      record: { directory: trace },
      emulate: { count: 3, timeScale: 100 },
      log: { level: "error" },
    };
    const configMap = new ConfigMap(directory, fixed);
    const { url, adminUrl, end } = await startGateway(configMap.file);
    const since = performance.now();
    const storm = await policyStorm({ url, adminUrl, token: TOKEN, configMap, fixed, changes, invalid, clients });
    const seconds = (performance.now() - since) / 1000;
    await end();
    const { decisions, unnamed, changes: recorded, replay } = await traceOfStorm(trace);
    report(storm, seconds);
    const parity = `${replay.decisions} of ${decisions} decisions compared, ${replay.differences} differences`;
    process.stdout.write(
      `trace      ${recorded} changes; decisions that do not name the version in force: ${unnamed}; ${parity}\n`,
    );
    const isWell =
      storm.failed === 0 &&
      storm.slipped.length === 0 &&
      storm.refused.length === invalid &&
      recorded === changes &&
      unnamed === 0 &&
      replay.differences === 0 &&
      replay.decisions === decisions;
    return isWell ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

async function startGateway(file: string): Promise<{ url: string; adminUrl: string; end: () => Promise<void> }> {
  const main = join(import.meta.dirname, "../src/main.ts");
  const env = { ...process.env, BENCH_TOKEN: TOKEN };
  const gateway = kept(
    spawn(process.execPath, [main, "serve", "--config", file], { stdio: ["ignore", "pipe", "inherit"], env }),
  );
  let output = "";
  for await (const text of gateway.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += String(text);
    const [, url] = /"url":"([^"]+)"|ready at (http:\S+):/.exec(output) ?? [];
    if (url === undefined || !output.includes("ready")) continue;
    gateway.stdout.resume();
    const end = async (): Promise<void> => {
      gateway.kill("SIGINT");
      await once(gateway, "exit");
    };
    return { url, adminUrl: /"adminUrl":"([^"]+)"/.exec(output)?.[1] ?? "", end };
  }
  throw new Error(`the gateway ended before it was ready: ${output}`);
}

function report(storm: StormResult, seconds: number): void {
  const { requests, failed, failures, applied, refused, slipped, versions, adminMillis, fileMillis } = storm;
  const by = Object.entries(applied).map(([source, count]) => `${source} ${count}`);
  const lines = [
    `requests   ${requests} in ${seconds.toFixed(1)} s, failed: ${failed} ${failures.join("; ")}`,
    `applied    ${by.join(", ")}; version ${storm.versionInForce} in force; answers name ${versions.size} of them`,
    `refused    ${refused.length}, each with its path: ${[...new Set(refused)].join(", ")}`,
    `slipped    ${slipped.length} ${slipped.join("; ")}`,
    `admin API  ${median(adminMillis).toFixed(1)} ms to the answer (median), at most ${Math.max(...adminMillis).toFixed(1)}`,
    `file       ${median(fileMillis).toFixed(1)} ms from the swap (median), at most ${Math.max(...fileMillis).toFixed(1)}`,
  ];
  process.stdout.write(`${lines.join("\n")}\n`);
}

const { values } = parseArgs({
  options: {
    changes: { type: "string", default: "200" },
    invalid: { type: "string", default: "20" },
    clients: { type: "string", default: "16" },
  },
});
process.exitCode = await main(Number(values.changes), Number(values.invalid), Number(values.clients));
