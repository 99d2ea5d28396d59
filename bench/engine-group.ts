import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { kept } from "./children.ts";

/** Groups of processes that end with the bench: an engine's server may end before the processes that it started. */
const groups = new Set<number>();
process.on("exit", () => {
  for (const group of groups) signalGroup(group, "SIGKILL");
});

/** Starts a command of the shell as a group of processes of its own, all of which get the signals. */
export function startGroup(line: string, env: NodeJS.ProcessEnv = process.env): ChildProcess {
  const child = kept(spawn("/bin/sh", ["-c", `exec ${line}`], { stdio: "ignore", detached: true, env }));
  groups.add(child.pid!);
  return child;
}

/** To all of a group; one that has ended gets none. */
export function signalGroup(group: number, name: NodeJS.Signals): void {
  try {
    process.kill(-group, name);
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}

/** A real engine beside others that have work takes minutes. */
const READY_SECONDS_MAX = 900;

/** Resolves once the engine at this port of loopback reports that it is well; rejects where it ends, or never does. */
export async function engineReady(port: number, engine: ChildProcess): Promise<void> {
  for (let tries = 0; tries < 2 * READY_SECONDS_MAX && engine.exitCode === null; tries++) {
    const isWell = await fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isWell) return;
    await sleep(500);
  }
  throw new Error(`the engine at ${port} ended, or was not ready within ${READY_SECONDS_MAX} s`);
}

/**
 * A port for engines that are started again, and the hundred behind it: below those that connections are given, since
 * one that asks for an engine that is gone may be given the port it asks for.
 */
export function enginePort(): number {
  return 20_000 + Math.floor(Math.random() * 12_000);
}
