import { connect, type Socket } from "node:net";
import type { Got } from "./client.ts";

const HEAD_END = "\r\n\r\n";
const LAST_CHUNK = "\r\n0\r\n\r\n";

/**
 * A client that takes no notice of `connection: close`: it sends its next request on the same connection as long as it
 * sees no end of it, as careless clients do.
 */
export class LastingClient {
  readonly #port: number;
  #socket: Socket | undefined;

  constructor(port: number) {
    this.#port = port;
  }

  /** A chat request with an answer of events. */
  ask(): Promise<Got> {
    const body = JSON.stringify({ model: "tiny", stream: true, messages: [{ role: "user", content: "lasting" }] });
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`;
    const socket = (this.#socket ??= connect({ host: "127.0.0.1", port: this.#port, noDelay: true }));
    const since = performance.now();
    let text = "";
    return new Promise((resolve) => {
      const over = (isWhole: boolean, reason = ""): void => {
        socket.removeAllListeners();
        socket.on("error", () => {});
        // An end that comes while nobody asks is seen at once.
        const forget = (): void => void (this.#socket === socket && (this.#socket = undefined));
        socket.once("end", forget).once("close", forget);
        if (!isWhole) forget();
        const status = Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0);
        const hasBytes = text.includes(HEAD_END) && !text.endsWith(HEAD_END);
        resolve({ status, reason, isWhole, hasBytes, firstByteMillis: NaN, millis: performance.now() - since });
      };
      socket.setEncoding("utf8");
      socket.on("data", (piece: string) => {
        text += piece;
        if (text.endsWith(LAST_CHUNK)) over(text.includes("[DONE]"));
        else if (/^content-length: /im.test(text) && text.endsWith("}")) over(false, reasonIn(text));
      });
      socket.once("error", () => over(false, "connection"));
      socket.once("end", () => over(false, "connection"));
      socket.once("close", () => over(false, "connection"));
      socket.write(`${head}${HEAD_END}${body}`);
    });
  }

  end(): void {
    this.#socket?.destroy();
  }
}

function reasonIn(text: string): string {
  return /^x-gnomon-reason: (.*)$/im.exec(text)?.[1] ?? "";
}
