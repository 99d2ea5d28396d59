import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Addresses of its loopback device that pods and services get. */
export const POD_ADDRESSES = addresses("10.77.1", 30);
export const SERVICE_ADDRESSES = addresses("10.77.2", 10);

const UNSHARE = ["--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const SETUP = [
  "ip link set lo up",
  ...[...POD_ADDRESSES, ...SERVICE_ADDRESSES].map((address) => `ip addr add ${address}/32 dev lo`),
  "mount -t tmpfs tmpfs /run",
  'cp /etc/hosts "$WALK_FOLDER/hosts"',
  'mount --bind "$WALK_FOLDER/hosts" /etc/hosts',
];

/** Why there can be no private network here; undefined where there can. */
export function whyNoPrivateNetwork(): string | undefined {
  if (process.platform !== "linux") return "namespaces are those of Linux";
  const script = "ip link set lo up && mount -t tmpfs tmpfs /run";
  const { status } = spawnSync("unshare", [...UNSHARE, "sh", "-euc", script], { stdio: "ignore" });
  return status === 0 ? undefined : "this user may not unshare a network";
}

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a module in a network of its own that has nothing but a loopback device with the addresses of pods, and with a /run
 * and an /etc/hosts of its own. All that it starts ends with it.
 */
export async function runInPrivateNetwork(module: string, args: readonly string[]): Promise<Ran> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-walk-"));
  try {
    const script = `${SETUP.join("\n")}\nexec "$@"`;
    const child = spawn("unshare", [...UNSHARE, "sh", "-euc", script, "walk", process.execPath, module, ...args], {
      env: { ...process.env, WALK_FOLDER: folder, TMPDIR: folder },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    return { code, stdout, stderr };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function addresses(network: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${network}.${i + 11}`);
}
