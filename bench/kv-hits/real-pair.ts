import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { kept } from "../children.ts";
import { EventRelay } from "./event-relay.ts";

interface RealEngine {
  readonly port: number;
  readonly publisherPort: number;
  readonly replayPort: number;
  readonly relay: EventRelay;
  child: ChildProcess;
}

/** Groups of processes that end with the bench. */
const groups = new Set<number>();
process.on("exit", () => {
  for (const group of groups) kill(group);
});

/** Two real vLLM engines that publish KV events, each behind a relay that can lose them. */
export class RealPair {
  readonly #command: string;
  readonly #engines: RealEngine[] = [];
  /** As the gateway's configuration has them. */
  readonly endpoints: { readonly url: string; readonly labels: Readonly<Record<string, string>> }[] = [];

  readonly #hidesTokens: boolean;

  /** `hidesTokens`: their events reach the gateway as of engines that send no tokens. */
  constructor(command: string, hidesTokens = false) {
    this.#command = command;
    this.#hidesTokens = hidesTokens;
  }

  get urls(): string[] {
    return this.endpoints.map(({ url }) => url);
  }

  get relays(): EventRelay[] {
    return this.#engines.map(({ relay }) => relay);
  }

  async start(): Promise<void> {
    // Below the ports that connections are given: one that asks for an engine that is gone may be given the port it asks for.
    const base = 20_000 + Math.floor(Math.random() * 12_000);
    for (let i = 0; i < 2; i++) {
      const [port, publisherPort, replayPort] = [base + i, base + 10 + i, base + 20 + i];
      const relay = new EventRelay(publisherPort, replayPort, this.#hidesTokens);
      const listens = await relay.start();
      const child = this.#spawn({ port, publisherPort, replayPort });
      this.#engines.push({ port, publisherPort, replayPort, relay, child });
      this.endpoints.push({
        url: `http://127.0.0.1:${port}`,
        labels: {
          "gnomon/kv-events-port": String(listens.port),
          "gnomon/kv-events-replay-port": String(listens.replayPort),
        },
      });
    }
    await Promise.all(this.#engines.map(ready));
  }

  /** One of them dies, and comes back with an empty cache. */
  async restart(): Promise<void> {
    const [engine] = this.#engines;
    if (engine === undefined) return;
    kill(engine.child.pid!);
    await sleep(1_000);
    engine.child = this.#spawn(engine);
    await ready(engine);
  }

  close(): void {
    for (const { relay, child } of this.#engines) {
      relay.close();
      kill(child.pid!);
    }
  }

  #spawn({ port, publisherPort, replayPort }: Omit<RealEngine, "relay" | "child">): ChildProcess {
    const config = {
      enable_kv_cache_events: true,
      publisher: "zmq",
      endpoint: `tcp://*:${publisherPort}`,
      replay_endpoint: `tcp://*:${replayPort}`,
    };
    const line = `${this.#command.replaceAll("PORT", String(port))} --kv-events-config '${JSON.stringify(config)}'`;
    const child = kept(spawn("/bin/sh", ["-c", `exec ${line}`], { stdio: "ignore", detached: true }));
    groups.add(child.pid!);
    return child;
  }
}

async function ready({ port }: Pick<RealEngine, "port">): Promise<void> {
  for (;;) {
    const isWell = await fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (isWell) return;
    await sleep(500);
  }
}

/** All of a group; one that has ended is passed over. */
function kill(group: number): void {
  try {
    process.kill(-group, "SIGKILL");
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "ESRCH")) throw error;
  }
}
