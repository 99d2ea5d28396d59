import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { EmulatorOptions } from "#emulator/server.ts";

/** What an engine's process reports to the one that started it, once. */
export type EngineProcessMessage =
  | { readonly kind: "started"; readonly url: string }
  | { readonly kind: "failed"; readonly code: string | undefined; readonly message: string };

const WORKER = fileURLToPath(new URL("../../../bin/emulated-engine.js", import.meta.url));
/** A tokenizer takes seconds to load. */
const START_MILLIS_MAX = 60_000;
const STOP_MILLIS_MAX = 3_000;

/** An emulated engine in a process of its own, so that it can be stopped, killed and loaded like a real one. */
export class EngineProcess {
  readonly #child: ChildProcess;
  readonly url: string;
  /** Why it ended, without having been asked. */
  readonly lost: Promise<string>;
  #stopping = false;

  /** Rejects with the error that it met, the system's with its code. */
  static async start(options: EmulatorOptions): Promise<EngineProcess> {
    const child = fork(WORKER, {
      detached: true,
      serialization: "advanced",
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    child.send(options);
    return new EngineProcess(child, await started(child));
  }

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
    this.lost = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        if (!this.#stopping) resolve(`the emulated engine at ${url} ended (${signal ?? `exit code ${code}`})`);
      });
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Ends it as vLLM is ended, and by force after some seconds. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MILLIS_MAX);
    await ended;
    clearTimeout(timer);
  }
}

function started(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(new Error(`no word within ${START_MILLIS_MAX / 1000} s`));
    }, START_MILLIS_MAX);
    const ended = (code: number | null): void => settle(() => reject(new Error(`it ended with exit code ${code}`)));
    const settle = (how: () => void): void => {
      clearTimeout(timer);
      child.removeListener("exit", ended);
      how();
    };
    child.once("error", (error) => settle(() => reject(error)));
    child.once("exit", ended);
    child.once("message", (message: EngineProcessMessage) => {
      if (message.kind === "started") return settle(() => resolve(message.url));
      const { code } = message;
      const error = new Error(message.message);
      settle(() => reject(code === undefined ? error : Object.assign(error, { code })));
    });
  });
}
