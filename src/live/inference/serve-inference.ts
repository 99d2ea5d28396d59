import { Forward } from "../upstream/forward.ts";
import { refusal } from "../http/errors.ts";
import { keepStream } from "../continuation/keep-stream.ts";
import { type OnRouted, askBody } from "../routing/ask.ts";
import { clientTimeout } from "../request/client-timeout.ts";
import type { Exchange } from "./exchange.ts";
import { readBody } from "../http/request-body.ts";
import { BODY_READ } from "#core/path/path-event.ts";

/**
 * The path of one inference request: body → what it asks → who asks → its tokens and block hashes → the decision → the
 * endpoint's answer, which `Forward` carries back while it reports to the router how it goes.
 *
 * It waits only for the body and for a tokenizer that cannot answer at once; all else is one run of the event loop.
 */
export function serveInference(exchange: Exchange): void {
  const { context, limits, incoming, headers } = exchange;
  const timeout = clientTimeout(headers, context.timeoutHeaders);
  if (typeof timeout === "string") return exchange.refuse(refusal("bad-request", timeout));
  exchange.timeoutMicros = timeout;
  if (timeout !== undefined) exchange.deadlineAt = exchange.openedAt + timeout;
  context.spans?.opened(exchange);
  readBody(incoming, {
    asker: exchange,
    declaredLength: headers.get("content-length"),
    bytesMax: limits.bodyBytesMax,
    hold: (bytes) => exchange.holdBody(bytes),
    done: (body) => {
      exchange.bodyCame();
      exchange.dispatch(BODY_READ);
      if (exchange.over) return;
      if (!Buffer.isBuffer(body)) return exchange.refuse(body);
      const routed: OnRouted = (decision, sent, hidesUsage) => {
        context.router.sent();
        exchange.forward(new Forward(exchange, sent, decision, hidesUsage));
      };
      askBody(exchange, body, routed, (parsed, prompt) => keepStream(exchange, parsed, prompt));
    },
  });
}
