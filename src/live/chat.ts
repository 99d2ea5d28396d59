import type { Rejected } from "#core/decision.ts";
import type { RouteRequest } from "#core/request.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";

import { chooseReader } from "./answer/choose-reader.ts";
import type { GatewayParts } from "./gateway-parts.ts";
import { nowMicros } from "./clock.ts";
import { type Refusal, refusal } from "./answer/errors.ts";
import type { Exchange } from "./request/exchange.ts";
import { isFields } from "./fields.ts";
import { laxBoolean } from "./request/lax-boolean.ts";
import { AskerLeft } from "./loop-turn.ts";
import { Forward } from "./upstream/forward.ts";
import { onlyModel, servedModels, unknownModelMessage } from "./discovery/models.ts";
import { type ParsedRequest, isRefusal, parseRequest } from "./request/parse-request.ts";
import { readBody, withField } from "./request/request-body.ts";
import { BODY_READ } from "./request-state/request-event.ts";
import type { TokenizedPrompt, Tokenizer } from "./tokenizer/tokenizer.ts";
import { tokensOfAll, truncated } from "./request/truncation.ts";

/**
 * The path of one inference request: body → what it asks → who asks → its tokens and block hashes → the decision → the
 * endpoint's answer, which `Forward` carries back while it reports to the router how it goes.
 *
 * It waits only for the body and for a tokenizer that cannot answer at once; all else is one run of the event loop.
 */
export function serveChat(exchange: Exchange): void {
  const { limits, incoming, headers } = exchange;
  readBody(incoming, {
    declaredLength: headers.get("content-length"),
    bytesMax: limits.bodyBytesMax,
    hold: (bytes) => exchange.holdBody(bytes),
    done: (body) => {
      exchange.dispatch(BODY_READ);
      if (exchange.over) return;
      try {
        if (Buffer.isBuffer(body)) serveBody(exchange, body);
        else exchange.refuse(body);
      } catch (error) {
        exchange.bug(error);
      }
    },
  });
}

function serveBody(exchange: Exchange, body: Buffer): void {
  const { limits, headers, route } = exchange;
  exchange.arrivedAt = nowMicros();
  const parsed = parseRequest(route, headers.get("content-type"), body, limits, exchange);
  if (parsed instanceof Promise) later(exchange, parsed, (known) => serveParsed(exchange, body, known));
  else serveParsed(exchange, body, parsed);
}

function serveParsed(exchange: Exchange, body: Buffer, parsed: ParsedRequest | Refusal): void {
  if (isRefusal(parsed)) return exchange.refuse(parsed);
  const { context } = exchange;
  exchange.stream = parsed.stream;
  const model = parsed.model === "" ? onlyModel(context.directory) : parsed.model;
  if (model === undefined) return exchange.refuse(noModel(context));
  exchange.model = model;

  const { source } = parsed.prompt;
  if (source === undefined || exchange.route.countsOnly) return decide(exchange, body, parsed, NO_PROMPT);
  const tokenizer = context.tokenizer(model);
  const encoded = tokenizer.encode(source, { model, salt: parsed.cacheSalt }, exchange);
  if (encoded instanceof Promise) {
    later(exchange, encoded, (prompt) => decide(exchange, body, parsed, prompt, tokenizer));
  } else decide(exchange, body, parsed, encoded, tokenizer);
}

/** Goes on once it is known, unless the client left meanwhile, which also ends the work. */
function later<T>(exchange: Exchange, promised: Promise<T>, goOn: (known: T) => void): void {
  promised.then(goOn).catch((error: unknown) => {
    if (!(error instanceof AskerLeft)) exchange.bug(error);
  });
}

function decide(
  exchange: Exchange,
  body: Buffer,
  parsed: ParsedRequest,
  whole: TokenizedPrompt,
  tokenizer?: Tokenizer,
): void {
  if (exchange.over) return;
  const { context, headers, model } = exchange;
  const prompt = truncated(whole, parsed.fields);
  // The engine's count of a prompt that it cuts is not that of the text.
  if (tokenizer !== undefined && parsed.prompt.count === 1 && prompt === whole) exchange.encoded(tokenizer, prompt);
  if (prompt.fellBack) context.observe.tokenizerFellBack(model);
  const hidesUsage = addsUsage(exchange, parsed);
  if (prompt === whole) {
    const { dialect } = exchange.route;
    exchange.answerReader = chooseReader(context, { parsed, dialect, prompt, tokenizer, addsUsage: hidesUsage });
  }
  const { tenant, session, profile, sloClass } = context.identifier.identify(headers, parsed.fields);
  const chosen = context.profileOf(model, profile);
  if (typeof chosen !== "string") return exchange.refuse(chosen);
  const request: RouteRequest = {
    id: exchange.routeId,
    model,
    tenant,
    session,
    sloClass,
    priority: priorityOf(exchange, parsed),
    promptTokens: tokensOfAll(whole, prompt, parsed.prompt, parsed.fields),
    promptTokensExact: prompt.exact && parsed.prompt.count === 1,
    outputTokensMax: parsed.outputTokensMax,
    sequences: parsed.sequences,
    blocks: prompt.blocks,
    ...(!parsed.cacheRead && { cacheRead: false }),
    profile: chosen,
  };
  exchange.prompt = { promptTokens: request.promptTokens, exact: request.promptTokensExact };
  exchange.arrived();
  const decision = context.tap.accept({ kind: "request-arrived", at: nowMicros(), request });
  if (decision.kind === "rejected") {
    exchange.rejected = decision;
    return exchange.refuse(rejection(context, decision, model));
  }

  context.attempts.retries.earn();
  exchange.forward(new Forward(exchange, bodyFor(body, parsed, model, hidesUsage), decision, hidesUsage));
}

const NO_PROMPT: TokenizedPrompt = { blocks: EMPTY_CHAIN, promptTokens: 0, exact: false, fellBack: false };

/** vLLM lets a header go before the body. */
function priorityOf({ headers }: Exchange, parsed: ParsedRequest): number {
  const header = headers.get("x-vllm-priority");
  const priority = Number(header);
  return header === "" || !Number.isFinite(priority) ? parsed.priority : priority;
}

function noModel({ directory }: GatewayParts): Refusal {
  if (directory.all().length === 0) return refusal("no-endpoint", "No engine is known to this gateway.");
  if (servedModels(directory).length === 0) return refusal("no-endpoint", "No engine has reported what it serves yet.");
  return refusal("bad-request", "`model` is required, since not exactly one model is served.", "model");
}

function rejection({ directory }: GatewayParts, { reason }: Rejected, model: string): Refusal {
  switch (reason) {
    case "unknown-model":
      return refusal("unknown-model", unknownModelMessage(directory, model), "model");
    case "no-endpoint":
      return refusal("no-endpoint", "No engine is ready for this request.");
    case "saturated":
      return refusal("saturated", "All engines that serve this model are at their limit; try again later.");
  }
}

/** Where the gateway is to ask for usage: a stream of OpenAI's whose client did not ask itself. */
function addsUsage({ context, route }: Exchange, { stream, fields }: ParsedRequest): boolean {
  if (!context.requestUsage || !stream || (route.dialect !== "chat" && route.dialect !== "completions")) return false;
  const options = fields?.["stream_options"];
  return !isFields(options) || laxBoolean(options["include_usage"]) !== true;
}

/** The client's own bytes, but for a field that must be there. */
function bodyFor(body: Buffer, parsed: ParsedRequest, model: string, asksUsage: boolean): Buffer {
  const named = parsed.model === "" && parsed.fields !== undefined ? withField(body, "model", model) : body;
  if (!asksUsage) return named;
  const options = parsed.fields?.["stream_options"];
  const merged = { ...(isFields(options) ? options : {}), include_usage: true, continuous_usage_stats: false };
  return withField(named, "stream_options", merged);
}
