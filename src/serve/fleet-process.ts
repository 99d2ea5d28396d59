import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Config } from "#config/schema.ts";
import type { FleetReady } from "./run-fleet.ts";
import { CommandFailure } from "./command-failure.ts";

/** Emulated engines in a process of their own, so that they take no time from the gateway's event loop. */
export interface FleetProcess {
  readonly urls: readonly string[];
  /** Told when it ends without having been asked. */
  readonly lost: Promise<string>;
  stop(): Promise<void>;
}

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
/** A tokenizer for each engine takes seconds to load. */
const START_MILLIS_MAX = 60_000;
const STOP_MILLIS_MAX = 3_000;

/**
 * Starts `gnomon emulate`. The child leads a process group of its own: an interrupt at the terminal reaches the gateway
 * alone, which drains before it stops the engines. When this process dies the channel to it closes, and it ends too.
 */
export async function startFleetProcess(options: Config["emulate"]): Promise<FleetProcess> {
  const sets = Object.entries(options).map(([key, value]) => `emulate.${key}=${value}`);
  const child = fork(
    MAIN,
    ["emulate", ...(options.portBase === 0 ? ["--port-base", "0"] : []), ...sets.flatMap((set) => ["--set", set])],
    {
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    },
  );
  const complaints: string[] = [];
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    if (complaints.length < COMPLAINTS_MAX) complaints.push(text);
  });
  const urls = await ready(child, complaints);
  let stopping = false;
  const lost = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => {
      if (!stopping) resolve(`the emulated fleet ended (${signal ?? `exit code ${code}`})`);
    });
  });
  return {
    urls,
    lost,
    stop: () => {
      stopping = true;
      return stop(child);
    },
  };
}

const COMPLAINTS_MAX = 100;

function ready(child: ChildProcess, complaints: readonly string[]): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      const said = complaints
        .join("")
        .trim()
        .replace(/^gnomon: /, "");
      reject(new CommandFailure(`the emulated fleet did not start: ${said === "" ? why : said}`));
    };
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      fail(`no word within ${START_MILLIS_MAX / 1000} s`);
    }, START_MILLIS_MAX);
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => {
      clearTimeout(timer);
      fail(`exit code ${code}`);
    });
    child.once("message", (message) => {
      clearTimeout(timer);
      child.removeAllListeners("close");
      resolve((message as FleetReady).urls);
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MILLIS_MAX);
  await ended;
  clearTimeout(timer);
}
