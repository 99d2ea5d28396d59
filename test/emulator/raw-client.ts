import { connect } from "node:net";

/** Sends bytes as they are and gathers the answer until the server closes, or until `done` says that it is whole. */
export function sendRaw(port: number, bytes: Buffer, done: (received: Buffer) => boolean): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (part: Buffer) => {
      parts.push(part);
      if (done(Buffer.concat(parts))) socket.destroy();
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(Buffer.concat(parts)));
  });
}

/** True once a response of known length or a chunked one has come to its end. `head` for an answer without a body. */
export function isWhole(received: Buffer, head = false): boolean {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return false;
  if (head) return true;
  const text = received.subarray(0, end).toString("latin1");
  if (text.includes("transfer-encoding: chunked")) return received.subarray(-5).toString("latin1") === "0\r\n\r\n";
  const length = /content-length: (\d+)/.exec(text)?.[1];
  return length !== undefined && received.length >= end + 4 + Number(length);
}

/** A request as bytes. */
export function requestBytes(method: string, path: string, body?: unknown, headers: readonly string[] = []): Buffer {
  const payload = body === undefined ? "" : JSON.stringify(body);
  const lines = [`${method} ${path} HTTP/1.1`, "Host: emulator", ...headers];
  if (body !== undefined) lines.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(payload)}`);
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${payload}`);
}
