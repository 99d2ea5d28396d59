import { MessageWriter } from "./grpc/message-writer.ts";
import { EXTERNAL_PROCESSOR } from "./health.ts";

/** What a proxy opens a request's stream with. */
export const PROXY_CALL = {
  ":method": "POST",
  ":path": `/${EXTERNAL_PROCESSOR}/Process`,
  "content-type": "application/grpc",
  te: "trailers",
};

/** Fields of a proxy's message. */
export const PHASE = { requestHeaders: 2, responseHeaders: 3, requestBody: 4, responseBody: 5 } as const;

/** A message of the headers of a request, whose body comes in `mode`, or of a response; framed. */
export function proxiedHeaders(
  phase: typeof PHASE.requestHeaders | typeof PHASE.responseHeaders,
  headers: Readonly<Record<string, string>>,
  mode?: number,
): Buffer {
  const writer = new MessageWriter();
  if (mode !== undefined) {
    writer.number(2, mode);
    writer.number(1, mode);
    writer.message(11, 0);
  }
  const head = writer.length;
  for (const [name, value] of Object.entries(headers)) {
    const header = writer.length;
    writer.latin1(3, value);
    writer.text(1, name);
    writer.message(1, header);
  }
  writer.message(1, head);
  writer.message(phase, head);
  writer.frame(0);
  return writer.written();
}

/** A message of a body, or of a piece of it where it does not end with that, framed. */
export function proxiedBody(
  phase: typeof PHASE.requestBody | typeof PHASE.responseBody,
  body: Buffer,
  ends = true,
): Buffer {
  const writer = new MessageWriter(body.length);
  if (ends) writer.number(2, 1);
  writer.bytes(1, body);
  writer.message(phase, 0);
  writer.frame(0);
  return writer.written();
}
