/** A response as on the wire, taken apart. */
export interface HttpMessage {
  readonly statusLine: string;
  readonly status: number;
  /** Names as written, in order. */
  readonly headers: readonly (readonly [string, string])[];
  /** Payload of each chunk; the whole body as one where the length was given. */
  readonly chunks: readonly string[];
  /** False when a chunked body lacks its last chunk, or bytes are missing from a measured one. */
  readonly complete: boolean;
}

export function parseResponse(bytes: Buffer): HttpMessage {
  const end = bytes.indexOf("\r\n\r\n");
  const [statusLine = "", ...lines] = bytes.subarray(0, end).toString("latin1").split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(": ");
    return [line.slice(0, colon), line.slice(colon + 2)];
  });
  const body = bytes.subarray(end + 4);
  const status = Number(statusLine.split(" ")[1]);
  const chunked = headers.some(([name, value]) => name === "transfer-encoding" && value === "chunked");
  if (chunked) return { statusLine, status, headers, ...parseChunks(body) };
  const length = Number(headers.find(([name]) => name === "content-length")?.[1] ?? body.length);
  return { statusLine, status, headers, chunks: [body.toString("utf8")], complete: body.length >= length };
}

function parseChunks(body: Buffer): { readonly chunks: readonly string[]; readonly complete: boolean } {
  const chunks: string[] = [];
  let at = 0;
  for (;;) {
    const line = body.indexOf("\r\n", at);
    if (line < 0) return { chunks, complete: false };
    const size = Number.parseInt(body.subarray(at, line).toString("latin1"), 16);
    if (size === 0) return { chunks, complete: true };
    if (line + 2 + size > body.length) return { chunks, complete: false };
    chunks.push(body.subarray(line + 2, line + 2 + size).toString("utf8"));
    at = line + 2 + size + 2;
  }
}

/** Data of the server-sent events of a body, in order. */
export function eventData(message: HttpMessage): readonly string[] {
  return message.chunks
    .join("")
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => (event.split("\n").find((line) => line.startsWith("data: ")) ?? "data: ").slice(6));
}

export function header(message: HttpMessage, name: string): string | undefined {
  return message.headers.find(([key]) => key === name)?.[1];
}
