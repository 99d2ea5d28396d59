import type { Socket } from "node:net";

/** Node's parser of what clients send, which is at work on all that one read brought; undefined in other Nodes than these. */
interface Parser {
  onIncoming?: (() => number) | null;
  readonly constructor: { readonly kOnBody?: number };
  [callback: number]: unknown;
}
type ParsedSocket = Socket & { readonly parser?: Parser | null };

/**
 * Ends the parsing of what a connection's last read brought, at its next request; for connections that are cut. 64 KiB have
 * 2,000 requests, each with its objects and, as its connection ends, an error with a stack.
 */
export function passOverRequests({ parser }: ParsedSocket): void {
  if (parser?.onIncoming) parser.onIncoming = () => NO_MORE_HTTP;
}

/**
 * Has the rest of what a connection brings pass without a buffer for each piece of it; for bodies that are refused, and
 * whose connections end. A read of 64 KiB may bring 11,000 pieces.
 */
export function passOverBody(socket: ParsedSocket): void {
  const { parser } = socket;
  const at = parser?.constructor.kOnBody;
  if (!parser || at === undefined || typeof parser[at] !== "function") return;
  const onBody = parser[at];
  parser[at] = undefined;
  // Parsers serve one connection after another. Node has let go of this one then, and none has taken it up.
  socket.once("close", () => (parser[at] = onBody));
}

/** As Node's own answer to the head of an upgrade. */
const NO_MORE_HTTP = 2;
