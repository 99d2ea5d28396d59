import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { kept } from "../children.ts";
import { hasRedis, quotaRows } from "./quota.ts";
import type { Row } from "./report.ts";

const ROOT = join(import.meta.dirname, "../..");

/**
 * Several gateways on a real Redis: the comparison and the faults of bench/replicas.ts, by how much quotas are
 * exceeded, and the tests that start a cluster of three and Sentinels. Without redis-server in PATH nothing is shown,
 * and that is stated.
 */
export async function replicasPart(seed: number): Promise<Row[]> {
  if (!hasRedis()) {
    return [{ what: "gateways that share over Redis", figure: "skipped: no redis-server in PATH", holds: true }];
  }
  return [
    await run("gateways that share over Redis (bench/replicas.ts)", ["bench/replicas.ts"], {}),
    ...(await quotaRows(seed)),
    await run("a cluster of three, and a failover of Sentinels", ["--test", "test/live/share/redis-places.test.ts"], {
      TEST_FAULTS: "1",
    }),
  ];
}

/** Engines and gateways refuse variables of this program that they do not know: only who reads one is given it. */
async function run(what: string, argv: readonly string[], own: Readonly<Record<string, string>>): Promise<Row> {
  const env = { ...process.env, ...own };
  const child = kept(spawn(process.execPath, argv, { cwd: ROOT, env, stdio: ["ignore", "inherit", "inherit"] }));
  const [code] = (await once(child, "exit")) as [number | null];
  return { what, figure: code === 0 ? "as stated above" : `ended with ${code}`, holds: code === 0 };
}
