import type { ChildProcess } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { enginePort, engineReady, signalGroup, startGroup } from "../engine-group.ts";
import { EventRelay } from "./event-relay.ts";

interface RealEngine {
  readonly port: number;
  readonly publisherPort: number;
  readonly replayPort: number;
  readonly relay: EventRelay;
  child: ChildProcess;
}

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
    const base = enginePort();
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
    await Promise.all(this.#engines.map(({ port }) => engineReady(port)));
  }

  /** One of them dies, and comes back with an empty cache. */
  async restart(): Promise<void> {
    const [engine] = this.#engines;
    if (engine === undefined) return;
    signalGroup(engine.child.pid!, "SIGKILL");
    await sleep(1_000);
    engine.child = this.#spawn(engine);
    await engineReady(engine.port);
  }

  close(): void {
    for (const { relay, child } of this.#engines) {
      relay.close();
      signalGroup(child.pid!, "SIGKILL");
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
    return startGroup(line);
  }
}
