import { readFileSync, readdirSync } from "node:fs";

const FOLDER = new URL("../../golden/vllm-http/", import.meta.url);

/** One captured exchange with a real vLLM; bytes as on the wire. */
export interface Capture {
  readonly name: string;
  readonly response: Buffer;
  readonly status: number;
  /** Without chunk framing. */
  readonly body: Buffer;
  readonly contentType: string;
  readonly method: string;
  readonly path: string;
  readonly requestBody: Buffer;
}

export function captureNames(): string[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith(".http") && !name.endsWith(".req.http"))
    .map((name) => name.slice(0, -".http".length));
}

export function capture(name: string): Capture {
  const response = whole(readFileSync(new URL(`${name}.http`, FOLDER)));
  const { line, headers, body } = split(response);
  let request = { line: "POST /v1/completions HTTP/1.1", body: Buffer.alloc(0) as Buffer };
  try {
    request = split(readFileSync(new URL(`${name}.req.http`, FOLDER)));
  } catch {
    // The tails of crashed answers were taken without their requests.
  }
  const [method = "", path = ""] = request.line.split(" ");
  return {
    name,
    response,
    status: Number(line.split(" ")[1]),
    body: /transfer-encoding: chunked/i.test(headers) ? dechunk(body) : body,
    contentType: /^content-type: ([^\r;]*)/im.exec(headers)?.[1] ?? "",
    method,
    path,
    requestBody: request.body,
  };
}

/** Some long streams were written down with their middle left out; what is left is joined at whole events. */
function whole(response: Buffer): Buffer {
  const gap = response.indexOf("...cut...");
  if (gap < 0) return response;
  const eventEnd = "\n\n\r\n";
  const before = response.subarray(0, response.lastIndexOf(eventEnd, gap) + eventEnd.length);
  return Buffer.concat([before, response.subarray(response.indexOf(eventEnd, gap) + eventEnd.length)]);
}

function split(message: Buffer): { line: string; headers: string; body: Buffer } {
  const end = message.indexOf("\r\n\r\n");
  const head = message.toString("latin1", 0, end);
  const first = head.indexOf("\r\n");
  return { line: first < 0 ? head : head.slice(0, first), headers: head, body: message.subarray(end + 4) };
}

/** The payload of chunks; takes a message that ends early. */
export function dechunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  while (at < body.length) {
    const end = body.indexOf("\r\n", at);
    const size = end < 0 ? 0 : Number.parseInt(body.toString("latin1", at, end), 16);
    if (size === 0 || Number.isNaN(size)) break;
    parts.push(body.subarray(end + 2, end + 2 + size));
    at = end + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
