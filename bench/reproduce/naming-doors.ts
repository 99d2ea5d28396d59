import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

const STATUS = /^HTTP\/1\.1 \d{3} [^\r]*\r\n/;
/** By which a tap knows who answered; the routers pass headers of engines on. */
const HEADER = "x-upstream-addr";

/** Addresses of their own, and one port, before engines at others: each answer's head gets the address that it came from. */
export class NamingDoors {
  readonly #servers: Server[] = [];
  readonly addresses: string[] = [];

  static async open(ports: readonly number[]): Promise<NamingDoors> {
    const doors = new NamingDoors();
    let shared = 0;
    for (const [i, port] of ports.entries()) {
      const host = `127.0.0.${5 + i}`;
      const server = createServer({ noDelay: true }, (socket) => pass(socket, port, `${host}:${shared}`));
      await new Promise<void>((resolve) => server.listen(shared, host, resolve));
      shared = (server.address() as AddressInfo).port;
      doors.#servers.push(server);
      doors.addresses.push(`${host}:${shared}`);
    }
    return doors;
  }

  close(): void {
    for (const server of this.#servers) server.close();
  }
}

function pass(from: Socket, port: number, address: string): void {
  const to = connect({ port, host: "127.0.0.1", noDelay: true });
  from.pipe(to);
  // An engine writes a head at once, and nothing of the answer before in the same piece.
  to.on("data", (piece: Buffer) => {
    const status = STATUS.exec(piece.toString("latin1", 0, 64))?.[0];
    if (status === undefined) return void from.write(piece);
    from.write(
      Buffer.concat([Buffer.from(`${status}${HEADER}: ${address}\r\n`, "latin1"), piece.subarray(status.length)]),
    );
  });
  to.on("end", () => from.end());
  for (const [one, other] of [
    [from, to],
    [to, from],
  ] as const)
    one.on("error", () => other.destroy()).on("close", () => other.destroy());
}
