import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { kept, message } from "../children.ts";
import type { Order } from "./fault.ts";

export interface EngineShape {
  /** Requests that it serves at once. */
  readonly slots: number;
  /** Tokens of an answer, and the time of each. */
  readonly tokens: number;
  readonly tokenMillis: number;
}

/** One endpoint in a process of its own, which may be killed, stopped, and started again on its port. */
export class FaultyEngine {
  readonly #shape: EngineShape;
  readonly #seed: number;
  #child: ChildProcess | undefined;
  port = 0;

  constructor(shape: EngineShape, seed: number) {
    this.#shape = shape;
    this.#seed = seed;
  }

  async start(): Promise<this> {
    const { slots, tokens, tokenMillis } = this.#shape;
    const file = join(import.meta.dirname, "faulty-engine.ts");
    const numbers = [this.port, slots, tokens, tokenMillis, this.#seed].map(String);
    const child = kept(fork(file, numbers, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
    this.#child = child;
    this.port = ((await message(child)) as { port: number }).port;
    return this;
  }

  order(order: Order): void {
    this.#child?.send(order);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  /** Takes nothing new, finishes what it has and ends. */
  drained(): Promise<void> {
    return this.#ended(() => this.order("drain"));
  }

  killed(): Promise<void> {
    return this.#ended(() => this.signal("SIGKILL"));
  }

  #ended(ask: () => void): Promise<void> {
    const child = this.#child;
    if (child === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      child.once("exit", () => resolve());
      ask();
    });
  }
}

export async function startEngines(count: number, shape: EngineShape, seed: number): Promise<FaultyEngine[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => new FaultyEngine(shape, seed + i).start()));
}
