import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { kept } from "../children.ts";
import { freePort } from "../free-port.ts";

const START_MILLIS_MAX = 600_000;
const POLL_MILLIS = 500;
const STOP_MILLIS_MAX = 20_000;
const COMPLAINT_CHARS_MAX = 4_000;

/** An engine that a command starts at a port of the loopback address, such as a script around `vllm serve`. */
export class EngineProcess {
  readonly url: string;
  readonly #child: ChildProcess;
  #complaint = "";

  private constructor(command: string, port: number) {
    this.url = `http://127.0.0.1:${port}`;
    this.#child = kept(spawn(command, [String(port)], { stdio: ["ignore", "pipe", "pipe"] }));
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#complaint = (this.#complaint + text).slice(-COMPLAINT_CHARS_MAX);
      });
  }

  /** Resolves when its /health answers 200; throws where it ends before, or does not come up. */
  static async start(command: string): Promise<EngineProcess> {
    const one = new EngineProcess(command, await freePort());
    const until = performance.now() + START_MILLIS_MAX;
    while (!(await one.#isHealthy())) {
      if (one.#isOver) throw new Error(`${command} ended:\n${one.#complaint}`);
      if (performance.now() > until) throw new Error(`${command}: not ready after ${START_MILLIS_MAX / 1000} s`);
      await sleep(POLL_MILLIS);
    }
    return one;
  }

  async stop(): Promise<void> {
    if (this.#isOver) return;
    const ended = new Promise((resolve) => this.#child.once("close", resolve));
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MILLIS_MAX);
    this.#child.kill("SIGTERM");
    await ended;
    clearTimeout(timer);
  }

  get #isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  async #isHealthy(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/health`)).ok;
    } catch {
      return false;
    }
  }
}
