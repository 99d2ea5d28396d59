import { Agent, request as httpRequest } from "node:http";

/** What a client got of one request. Times in milliseconds. */
export interface Got {
  /** 0 where the connection failed before a head. */
  readonly status: number;
  readonly reason: string;
  /** The answer is whole: its mark of completion came. */
  readonly isWhole: boolean;
  /** Some byte of the answer's body came. */
  readonly hasBytes: boolean;
  readonly firstByteMillis: number;
  readonly millis: number;
}

export interface Ask {
  readonly headers?: Readonly<Record<string, string>>;
  readonly stream?: boolean;
  readonly body?: string;
  readonly agent?: Agent;
}

const AGENT = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 4096 });
let asked = 0;

/** One chat request, whatever comes of it. */
export function ask(port: number, { headers = {}, stream = true, body, agent = AGENT }: Ask = {}): Promise<Got> {
  const content = `question ${asked++} of many, each unlike the others`;
  const text = body ?? JSON.stringify({ model: "tiny", stream, messages: [{ role: "user", content }] });
  const since = performance.now();
  let firstByteMillis = NaN;
  return new Promise((resolve) => {
    const over = (status: number, reason: string, isWhole: boolean): void => {
      const hasBytes = !Number.isNaN(firstByteMillis);
      resolve({ status, reason, isWhole, hasBytes, firstByteMillis, millis: performance.now() - since });
    };
    const sent = httpRequest(
      {
        host: "127.0.0.1",
        port,
        path: "/v1/chat/completions",
        method: "POST",
        agent,
        headers: { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers },
      },
      (response) => {
        let tail = "";
        let isOver = false;
        const reason = String(response.headers["x-gnomon-reason"] ?? "");
        const end = (): void => {
          if (isOver) return;
          isOver = true;
          over(response.statusCode ?? 0, reason, stream ? tail.includes("[DONE]") : response.complete);
        };
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => {
          if (Number.isNaN(firstByteMillis)) firstByteMillis = performance.now() - since;
          tail = (tail + chunk).slice(-64);
        });
        response.on("end", end);
        response.on("close", end);
        response.on("error", end);
      },
    );
    sent.on("error", () => over(0, "connection", false));
    sent.end(text);
  });
}

/** Runs `count` at once until all of `total` are done. */
export async function inParallel(total: number, count: number, one: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: count }, async () => {
      while (next < total) await one(next++);
    }),
  );
}

/** Sends at an even pace, whatever the answers take, and waits for all of them. */
export async function atRate(perSecond: number, seconds: number, one: (i: number) => Promise<void>): Promise<void> {
  const since = performance.now();
  const all: Promise<void>[] = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    const wait = since + (1000 * i) / perSecond - performance.now();
    if (wait > 1) await new Promise((resolve) => setTimeout(resolve, wait));
    all.push(one(i));
  }
  await Promise.all(all);
}
