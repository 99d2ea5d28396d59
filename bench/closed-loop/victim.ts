import { setTimeout as sleep } from "node:timers/promises";
import { type Order, Program } from "./program.ts";

/** An emulated engine that is killed under load, and a new one in its place. */
export class Victim {
  readonly #order: Order;
  #program: Program;

  private constructor(order: Order, program: Program) {
    this.#order = order;
    this.#program = program;
  }

  static async start(order: Order): Promise<Victim> {
    return new Victim(order, await Program.start(order, "gnomon emulates"));
  }

  async lose(
    afterMillis: number,
    forMillis: number,
  ): Promise<{ readonly fromWallMillis: number; readonly toWallMillis: number }> {
    await sleep(afterMillis);
    const fromWallMillis = Date.now();
    await this.#program.kill();
    await sleep(forMillis);
    this.#program = await Program.start(this.#order, "gnomon emulates");
    return { fromWallMillis, toWallMillis: Date.now() };
  }

  async stop(): Promise<void> {
    await this.#program.stop();
  }
}
