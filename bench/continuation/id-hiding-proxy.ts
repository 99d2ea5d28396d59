import { type Server, connect, createServer } from "node:net";

/** What asks an engine for token ids, and the same length of something that no engine knows. */
const ASKED = '"return_token_ids":true';
const HIDDEN = '"return_token_idz":true';

/** Stands before an engine and passes bytes, so that it is not asked for token ids; breaks with it. Returns its port. */
export async function idHidingProxy(enginePort: number): Promise<number> {
  const server: Server = createServer((client) => {
    const engine = connect(enginePort, "127.0.0.1");
    client.on("data", (bytes) =>
      engine.write(Buffer.from(bytes.toString("latin1").replaceAll(ASKED, HIDDEN), "latin1")),
    );
    engine.on("data", (bytes) => client.write(bytes));
    for (const [one, other] of [
      [client, engine],
      [engine, client],
    ] as const) {
      one.on("error", () => other.destroy());
      one.on("close", () => other.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return (server.address() as { port: number }).port;
}
