import { connect, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";

/** A mark in a prompt, by which an engine's connection knows the request whatever its router makes of the headers. */
const MARK = /mark-(\w+);/g;
/** Longer than a mark, which may lie across two pieces. */
const CARRIED_CHARS = 32;
const STEP_TIME = { kind: "coefficients", baseMicros: 6_000, perPrefillTokenMicros: 40, perDecodeMicros: 80 } as const;
const ENGINE = engineDefaults({ blockTokens: 16, kvBlocks: 2_001, modelTokensMax: 16_384, stepTime: STEP_TIME });

/** Emulated engines, each at an address of its own with the same port, as pods have; it is known who got which request. */
export class MarkedEngines {
  readonly #engines: Emulator[] = [];
  readonly #servers: Server[] = [];
  readonly urls: string[] = [];
  /** By mark, the engine that got it last. */
  readonly went = new Map<string, string>();

  async start(count: number, timeScale: number): Promise<void> {
    let port = 0;
    for (let i = 0; i < count; i++) {
      const engine = await startEmulator({
        host: "127.0.0.1",
        port: 0,
        model: "tiny",
        timeScale,
        seed: i,
        engine: ENGINE,
      });
      this.#engines.push(engine);
      const host = `127.0.0.${i + 5}`;
      const server = createServer({ noDelay: true }, (socket) =>
        this.#pass(socket, engine.port, `http://${host}:${port}`),
      );
      await new Promise<void>((resolve) => server.listen(port, host, resolve));
      ({ port } = server.address() as AddressInfo);
      this.#servers.push(server);
      this.urls.push(`http://${host}:${port}`);
    }
  }

  #pass(from: Socket, port: number, url: string): void {
    const to = connect({ port, host: "127.0.0.1", noDelay: true });
    let carried = "";
    from.on("data", (piece: Buffer) => {
      const text = carried + piece.toString("latin1");
      for (const [, mark] of text.matchAll(MARK)) this.went.set(mark!, url);
      carried = text.slice(-CARRIED_CHARS);
    });
    from.pipe(to);
    to.pipe(from);
    for (const [one, other] of [
      [from, to],
      [to, from],
    ] as const)
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
  }

  async stop(): Promise<void> {
    for (const server of this.#servers) server.close();
    await Promise.all(this.#engines.map((engine) => engine.close()));
  }
}
