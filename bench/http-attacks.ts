import { type Socket, connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** What an attack works with. */
export interface AttackPlace {
  readonly port: number;
  /** Of performance.now(); the attack ends its connections then. */
  readonly until: number;
  /** From 0 up to `below`, drawn from the seed. */
  readonly draw: (below: number) => number;
  /** Is notified of the status of every answer. */
  readonly answered: (status: number) => void;
}

type Attack = (place: AttackPlace) => Promise<void>;

interface Client {
  readonly socket: Socket;
  readonly closed: Promise<void>;
}

const CHAT = '{"model":"tiny","messages":[{"role":"user","content":"hello"}]}';
const LARGE = '{"model":"tiny","user":"large","messages":[{"role":"user","content":"hello"}]}';
const MIB = 1024 * 1024;
const PIPELINED_BYTES = 54_000;
/** What one read brings. */
const KEPT_BYTES = 65_000;
const STATUS_LINE = /HTTP\/1\.1 (\d{3}) /g;

function get(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
}

function chatHead(more: string): string {
  return `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n${more}\r\n`;
}

function post(body: string): string {
  return `${chatHead(`Content-Length: ${Buffer.byteLength(body)}\r\n`)}${body}`;
}

/** A connection that writes its first bytes; reads what comes back unless it is one that does not. */
function open({ port, until, answered }: AttackPlace, bytes: string | Buffer, reads = true): Client {
  const socket = connect(port, "127.0.0.1");
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  socket.on("error", () => {});
  const timer = setTimeout(() => socket.destroy(), Math.max(0, until - performance.now()));
  void closed.then(() => clearTimeout(timer));
  if (reads) {
    socket.on("data", (data: Buffer) => {
      for (const [, status] of data.toString("latin1").matchAll(STATUS_LINE)) answered(Number(status));
    });
  } else socket.pause();
  socket.write(bytes);
  return { socket, closed };
}

function firstAnswer({ socket, closed }: Client): Promise<void> {
  return Promise.race([closed, new Promise<void>((resolve) => socket.once("data", () => resolve()))]);
}

/** So many connections at once; each that ends is made anew after a pause, until the time is over. */
async function many(place: AttackPlace, count: number, bytes: () => string | Buffer, reads = true): Promise<void> {
  const one = async (): Promise<void> => {
    while (performance.now() < place.until) {
      await open(place, bytes(), reads).closed;
      await sleep(20);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
}

/** The same, of connections that write a piece now and then. */
async function trickle(place: AttackPlace, count: number, head: string, piece: string, millis: number): Promise<void> {
  const one = async (): Promise<void> => {
    while (performance.now() < place.until) {
      const { socket, closed } = open(place, head);
      const timer = setInterval(() => void socket.write(piece), millis);
      await closed;
      clearInterval(timer);
      await sleep(20);
    }
  };
  await Promise.all(Array.from({ length: count }, one));
}

const drawn = (place: AttackPlace, from: readonly string[]): string => from[place.draw(from.length)]!;
const repeated = (text: string, bytes: number): string => text.repeat(Math.ceil(bytes / text.length));

const METHODS = [
  "HEAD",
  "TRACE",
  "OPTIONS",
  "PROPFIND",
  "DELETE",
  "PUT",
  "CONNECT",
  "PRI",
  "M-SEARCH",
  "QUERY",
  "BREW",
];
const TARGETS = [
  "/healthz",
  "//gnomon/overview",
  "/gnomon/%6fverview",
  "/gnomon/../gnomon/overview",
  "/%2e%2e/gnomon/endpoints",
  "http://127.0.0.1/gnomon/overview",
  "http://127.0.0.1:1@evil/gnomon/decisions?n=100000",
  "/gnomon/overview;a=b",
  "/gnomon\\overview",
  "/gnomon/overview%00",
  "*",
  "/v1/models/%",
  `/v1/models/${"%41".repeat(2_000)}`,
  `/?${"a=b&".repeat(2_000)}`,
  "/v1/chat/completions?a#b",
];
const SMUGGLED = [
  "Content-Length: 4\r\nContent-Length: 5\r\n",
  "Content-Length: 4, 4\r\n",
  "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
  "Transfer-Encoding: xchunked\r\n",
  "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
  "Transfer-Encoding : chunked\r\n",
  "Content-Length: +4\r\n",
  "Content-Length: 0x4\r\n",
  "Host: b\r\n",
  "X: a\r\n b\r\n",
  "X: a\nContent-Length: 4\r\n",
];

/** What clients may do to a gateway's HTTP face; each takes its connections with it as its time ends. */
export const HTTP_ATTACKS: Readonly<Record<string, Attack>> = {
  "pipelined metrics": (place) => many(place, 1, () => repeated(get("/metrics"), PIPELINED_BYTES)),
  "pipelined metrics, unread": (place) => many(place, 20, () => repeated(get("/metrics"), PIPELINED_BYTES), false),
  "pipelined health": (place) => many(place, 20, () => repeated(get("/healthz"), PIPELINED_BYTES)),
  "pipelined chats": (place) => many(place, 20, () => repeated(post(CHAT), PIPELINED_BYTES)),
  "pipelined chats, unread": (place) => many(place, 20, () => repeated(post(CHAT), PIPELINED_BYTES), false),
  "unread pages": (place) => many(place, 200, () => get("/metrics"), false),
  "unread answers of 7 MB": (place) => many(place, 100, () => post(LARGE), false),
  "bodies held short of their end": (place) => {
    const body = Buffer.alloc(16 * MIB - 1, 0x20);
    const head = Buffer.from(chatHead(`Content-Length: ${16 * MIB}\r\n`));
    return many(place, 66, () => Buffer.concat([head, body]));
  },
  "bodies trickled": (place) => trickle(place, 500, chatHead("Content-Length: 1000000\r\n"), " ", 100),
  "heads trickled": (place) => trickle(place, 500, "GET / HTTP/1.1\r\nHost: a\r\n", "x: y\r\n", 50),
  "connections without a byte": (place) => many(place, 2_000, () => ""),
  "connections made and left": async (place) => {
    while (performance.now() < place.until) {
      const clients = Array.from({ length: 100 }, () => open(place, get("/healthz").slice(0, place.draw(40))));
      await sleep(5);
      for (const { socket } of clients) socket.destroy();
    }
  },
  "chunks of a byte": (place) =>
    many(place, 20, () => `${chatHead("Transfer-Encoding: chunked\r\n")}${repeated("1\r\n \r\n", MIB)}0\r\n\r\n`),
  "chunks of a byte, kept connections": async (place) => {
    const crumbs = `${chatHead("Transfer-Encoding: chunked\r\n")}${repeated("1\r\n \r\n", KEPT_BYTES)}0\r\n\r\n`;
    while (performance.now() < place.until) {
      const clients = Array.from({ length: 100 }, () => open(place, get("/healthz")));
      await Promise.race([sleep(place.until - performance.now()), Promise.all(clients.map(firstAnswer))]);
      for (const { socket } of clients) socket.write(crumbs);
      await Promise.race([sleep(place.until - performance.now()), Promise.all(clients.map(({ closed }) => closed))]);
      for (const { socket } of clients) socket.destroy();
    }
  },
  "chunk extensions": (place) =>
    many(place, 20, () => `${chatHead("Transfer-Encoding: chunked\r\n")}1;${"x".repeat(MIB)}\r\n \r\n0\r\n\r\n`),
  "many headers": (place) =>
    many(place, 50, () => `GET /healthz HTTP/1.1\r\nHost: a\r\n${repeated("a:b\r\n", 14_000)}\r\n`),
  "head too large": (place) => many(place, 50, () => `GET / HTTP/1.1\r\nHost: a\r\nx: ${"y".repeat(MIB)}\r\n\r\n`),
  "expectations held": (place) => many(place, 500, () => chatHead("Content-Length: 100\r\nExpect: 100-continue\r\n")),
  upgrades: (place) =>
    many(place, 50, () => {
      const protocol = drawn(place, ["websocket", "h2c", "TLS/1.0"]);
      return `GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`;
    }),
  "uploads aborted": async (place) => {
    const part = chatHead("Content-Length: 200000\r\n") + " ".repeat(100_000);
    while (performance.now() < place.until) {
      const clients = Array.from({ length: 50 }, () => open(place, part));
      await sleep(10);
      for (const { socket } of clients) socket.resetAndDestroy();
    }
  },
  "methods and targets": (place) =>
    many(place, 50, () => `${drawn(place, METHODS)} ${drawn(place, TARGETS)} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`),
  "targets that are read": (place) => many(place, 50, () => get(drawn(place, TARGETS))),
  "smuggled requests": (place) => many(place, 50, () => `${chatHead(drawn(place, SMUGGLED))}{}\r\n${get("/gnomon/")}`),
  "drawn bytes": (place) =>
    many(place, 50, () => Buffer.from(Array.from({ length: place.draw(2_000) }, () => place.draw(256)))),
  "requests with drawn damage": (place) =>
    many(place, 50, () => {
      const bytes = Buffer.from(drawn(place, [post(CHAT), get("/metrics"), post(CHAT) + get("/healthz")]));
      for (let left = 1 + place.draw(4); left > 0; left--) bytes[place.draw(bytes.length)] = place.draw(256);
      return bytes;
    }),
};
