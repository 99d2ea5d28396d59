import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { kept } from "../children.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const START_MILLIS_MAX = 60_000;
const STOP_MILLIS_MAX = 40_000;
const COMPLAINT_CHARS_MAX = 4_000;
const NANOS_PER_SECOND = 1e9;

/** Variables of ours would change what is measured. */
const ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith("GNOMON_") && !name.startsWith("AIBRIX_")),
);

/** Of a process's main thread so far, in seconds: time that it ran, and time that it was ready to and had no core. */
export interface CoreSeconds {
  readonly ran: number;
  readonly waited: number;
}

/** A command of ours with its flags; a list repeats its flag. */
export interface Order {
  readonly command: string;
  readonly operands?: readonly string[];
  readonly flags: Readonly<Record<string, string | number | readonly string[]>>;
}

/** A command of ours that runs until it is stopped, at the latest when this process ends. */
export class Program {
  readonly #name: string;
  readonly #child: ChildProcess;
  #complaint = "";

  private constructor({ command, operands = [], flags }: Order) {
    this.#name = `gnomon ${command}`;
    const set = Object.entries(flags).flatMap(([name, value]) =>
      (typeof value === "object" ? value : [value]).flatMap((one) => [`--${name}`, String(one)]),
    );
    const all = [MAIN, command, ...operands, ...set];
    this.#child = kept(spawn(process.execPath, all, { env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] }));
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#complaint = (this.#complaint + text).slice(-COMPLAINT_CHARS_MAX);
    });
  }

  /** Resolves when it has printed `ready` on its standard output. */
  static async start(order: Order, ready: string): Promise<Program> {
    const program = new Program(order);
    await program.#prints(ready);
    return program;
  }

  /** Runs a command to its end; throws for an exit code that is not among those accepted. */
  static async run(order: Order, accepted: readonly number[] = [0]): Promise<void> {
    const program = new Program(order);
    program.#child.stdout?.resume();
    const code = await program.#ended();
    if (code === null || !accepted.includes(code)) throw program.#failure(`exit code ${code}`);
  }

  /** Zeros where the system does not report them (/proc of Linux). */
  coreSeconds(): CoreSeconds {
    const all = withChildren(this.#child.pid ?? 0).map(coreSecondsOf);
    return {
      ran: all.reduce((sum, { ran }) => sum + ran, 0),
      waited: all.reduce((sum, { waited }) => sum + waited, 0),
    };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MILLIS_MAX);
    const ended = this.#ended();
    this.#child.kill("SIGTERM");
    await ended;
    clearTimeout(timer);
  }

  /** Without a chance to end well, those that it started included. */
  async kill(): Promise<void> {
    const ended = this.#ended();
    for (const pid of withChildren(this.#child.pid ?? 0).toReversed()) process.kill(pid, "SIGKILL");
    await ended;
  }

  #ended(): Promise<number | null> {
    return new Promise((resolve) => this.#child.once("close", resolve));
  }

  #prints(ready: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => {
        this.#child.kill("SIGKILL");
        reject(this.#failure(why));
      };
      const timer = setTimeout(() => fail(`not ready within ${START_MILLIS_MAX / 1000} s`), START_MILLIS_MAX);
      this.#child.once("close", (code) => fail(`exit code ${code}`));
      let output = "";
      this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
        if (output.includes(ready)) return;
        output += text;
        if (!output.includes(ready)) return;
        clearTimeout(timer);
        this.#child.removeAllListeners("close");
        resolve();
      });
    });
  }

  #failure(why: string): Error {
    return new Error(`${this.#name}: ${why}\n${this.#complaint}`);
  }
}

/** A process and those that it started: emulated engines have one each. */
function withChildren(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    return [pid, ...children.filter((child) => child !== "").map(Number)];
  } catch {
    return [pid];
  }
}

/** Of its main thread. */
function coreSecondsOf(pid: number): CoreSeconds {
  try {
    const [ran = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ").map(Number);
    return { ran: ran / NANOS_PER_SECOND, waited: waited / NANOS_PER_SECOND };
  } catch {
    return { ran: 0, waited: 0 };
  }
}
