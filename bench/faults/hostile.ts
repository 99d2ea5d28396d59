import { readFileSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { startEngines } from "./faulty-fleet.ts";
import { FAULTS, type Fault } from "./fault.ts";
import { startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";

/** In every prompt and every key that is sent, and so to be found nowhere else. */
const SECRET = "zq7-not-to-be-seen-anywhere";
const PATHS = [
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/messages",
  "/v1/responses",
  "/v1/embeddings",
  "/tokenize",
  "/v1/models",
  "/metrics",
  "/gnomon/endpoints",
  "/gnomon/admin/policy",
  "/gnomon/admin/policy/rollback",
  "/healthz",
  "/%2e%2e/etc/passwd",
  "//x",
  "*",
];
const CONNECTIONS = 32;
const ANSWER_MILLIS_MAX = 5_000;

/** Values where others are expected. */
const NOT_TEXTS: readonly unknown[] = [
  null,
  true,
  -1,
  1e308,
  "",
  [],
  {},
  [[[[]]]],
  "\ud800",
  "__proto__",
  { toString: 1 },
];

class Draws {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  below(count: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * count);
  }
  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}

/** Requests as nobody would send them, to engines that answer as no engine would; then all that was written is searched. */
export async function hostilePart(seed: number, seconds: number): Promise<Row[]> {
  const engines = await startEngines(2, { slots: 64, tokens: 3, tokenMillis: 5 }, seed);
  const faults = Object.fromEntries(
    FAULTS.filter((fault) => fault !== "hang").map((fault): [Fault, number] => [fault, 0.05]),
  );
  for (const engine of engines) engine.order({ faults });
  const gateway = await startGateway(
    engines.map(({ port }) => port),
    {
      limits: { requestReadMillisMax: 2_000, headersMillisMax: 1_000, bodyBytesMax: 262_144 },
      admission: { limits: { rate: { type: "rate-limit", requestsMax: 100_000, windowMillis: 1000 } } },
      record: { directory: join(process.env["TMPDIR"] ?? "/tmp", `gnomon-hostile-${process.pid}`), flushMillis: 50 },
      log: { level: "trace", access: "stdout" },
    },
  );
  const statuses = new Map<string, number>();
  const count = (key: string): void => void statuses.set(key, (statuses.get(key) ?? 0) + 1);
  const until = performance.now() + 1000 * seconds;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, i) => {
      const draws = new Draws(seed * 1_000 + i);
      while (performance.now() < until && gateway.exitCode() === undefined)
        count(await send(gateway.port, drawn(draws)));
    }),
  );
  const isUp = gateway.exitCode() === undefined;
  const defects = isUp ? await gateway.metric("gnomon_internal_errors_total") : NaN;
  const page = isUp ? await gateway.page() : "";
  const record = join(process.env["TMPDIR"] ?? "/tmp", `gnomon-hostile-${process.pid}`);
  await new Promise((resolve) => setTimeout(resolve, 500));
  const written = [page, readFileSync(join(gateway.folder, "output.log"), "utf8"), ...(await traceTexts(record))];
  const seen = written.filter((text) => text.includes(SECRET)).length;
  for (const text of written) {
    const at = text.indexOf(SECRET);
    if (at >= 0) console.error(text.slice(Math.max(0, at - 300), at + 100));
  }
  const own = [...statuses]
    .filter(([key]) => key.startsWith("500") && !key.endsWith("of an engine"))
    .reduce((sum, [, times]) => sum + times, 0);
  await gateway.stop();
  await Promise.all(engines.map((engine) => engine.killed()));
  const total = [...statuses.values()].reduce((sum, times) => sum + times, 0);
  const listed = [...statuses]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, times]) => `${key}: ${times}`)
    .join(", ");
  return [
    { what: `${total} hostile requests in ${seconds} s, seed ${seed}`, figure: listed, holds: isUp },
    {
      what: "crashes; answers of 500 of ours; defects counted",
      figure: `${isUp ? 0 : 1}; ${own}; ${defects}`,
      holds: isUp && own === 0 && defects === 0,
    },
    { what: `prompt or key in ${written.length} texts: metrics, log, trace`, figure: `${seen}`, holds: seen === 0 },
  ];
}

async function traceTexts(folder: string): Promise<string[]> {
  const { zstdDecompressSync, constants } = await import("node:zlib");
  const options = { finishFlush: constants.ZSTD_e_flush };
  return readdirSync(folder).map((name) => {
    const bytes = readFileSync(join(folder, name));
    return bytes.toString("latin1") + (name.endsWith(".zst") ? zstdDecompressSync(bytes, options).toString() : "");
  });
}

/** Bytes of a request, most of them nearly right. */
function drawn(draws: Draws): Buffer {
  const method = draws.of(["POST", "POST", "POST", "POST", "GET", "PUT", "DELETE", "OPTIONS", "BREW"]);
  const body = drawnBody(draws);
  const lengths = [body.length, body.length, body.length, body.length + 10, 0, -1, 1e12];
  const headers = [
    "host: 127.0.0.1",
    `content-type: ${draws.of(["application/json", "application/json", "text/plain", "multipart/form-data", "x"])}`,
    `content-length: ${draws.of(lengths)}`,
    `authorization: ${draws.of([`Bearer sk-${SECRET}`, SECRET, "Bearer", `Basic ${SECRET}`])}`,
    `x-api-key: ${SECRET}`,
  ];
  const extras = [
    `x-request-id: ${"r".repeat(draws.below(400))}`,
    "x-vllm-priority: NaN",
    `x-gnomon-tenant: ${SECRET}`,
    `x-session-id: ${SECRET}`,
    "routing-strategy: __proto__",
    "transfer-encoding: chunked",
    "content-encoding: gzip",
    "expect: 100-continue",
    `x-big: ${"h".repeat(draws.below(20_000))}`,
    "connection: upgrade",
    "x\u0000y: z",
  ];
  for (let i = draws.below(4); i > 0; i--) headers.push(draws.of(extras));
  const head = Buffer.from(
    `${method} ${draws.of(PATHS)} HTTP/1.${draws.below(2)}\r\n${headers.join("\r\n")}\r\n\r\n`,
    "latin1",
  );
  const bytes = Buffer.concat([head, body]);
  return draws.below(10) === 0 ? bytes.subarray(0, draws.below(bytes.length)) : bytes;
}

function drawnBody(draws: Draws): Buffer {
  const odd: readonly unknown[] = [
    null,
    true,
    -1,
    1e308,
    "",
    SECRET,
    [],
    {},
    [[[[]]]],
    "\ud800",
    "__proto__",
    { toString: 1 },
  ];
  const message = () => ({
    role: draws.of(["user", "system", "tool", SECRET, 3]),
    content: draws.of([SECRET, ...odd, [{ type: "text", text: SECRET }]]),
  });
  const body: Record<string, unknown> = {
    model: draws.of(["tiny", "tiny", "tiny", "no-such-model", ...NOT_TEXTS]),
    messages: [message(), message()],
  };
  for (let i = draws.below(5); i > 0; i--) {
    body[
      draws.of([
        "stream",
        "prompt",
        "max_tokens",
        "n",
        "stop",
        "user",
        "priority",
        "stream_options",
        "tools",
        "cache_salt",
        "messages",
        "input",
      ])
    ] = draws.of(odd);
  }
  if (draws.below(2) === 0) body["stream"] = true;
  const text = draws.below(20) === 0 ? `${"[".repeat(draws.below(3_000))}${SECRET}` : JSON.stringify(body);
  const bytes = Buffer.from(text);
  for (let i = draws.below(4) === 0 ? draws.below(6) : 0; i > 0; i--)
    bytes[draws.below(bytes.length)] = draws.below(256);
  return bytes;
}

/** Its status, or how the connection ended. */
function send(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.end(bytes));
    let head = "";
    const over = (how: string): void => {
      clearTimeout(timer);
      socket.destroy();
      const status = /^HTTP\/1\.1 (\d{3})/.exec(head)?.[1];
      const [first = ""] = head.split("\r\n\r\n");
      const reason = first.includes("x-gnomon-endpoint: http")
        ? "of an engine"
        : (/x-gnomon-reason: ([\w-]+)/i.exec(first)?.[1] ?? "");
      resolve(status === undefined ? how : `${status}${status.startsWith("5") ? ` ${reason}` : ""}`);
    };
    const timer = setTimeout(() => over("no answer in time"), ANSWER_MILLIS_MAX);
    socket.on("data", (chunk: Buffer) => {
      if (head.length < 4_096) head += chunk.toString("latin1");
    });
    socket.on("close", () => over("closed"));
    socket.on("error", () => over("reset"));
  });
}
