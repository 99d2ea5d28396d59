import type { Rejected } from "#core/decision.ts";
import type { RouteRequest } from "#core/request.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";

import type { ChatContext } from "./chat-context.ts";
import { nowMicros } from "./clock.ts";
import { type Refusal, refusal } from "./errors.ts";
import type { Exchange } from "./exchange.ts";
import { Forward } from "./forward.ts";
import { onlyModel, unknownModelMessage } from "./models.ts";
import { type ParsedRequest, isFields, isRefusal, parseRequest } from "./parse-request.ts";
import { readBody, withField } from "./request-body.ts";
import type { TokenizedPrompt } from "./tokenizer/tokenizer.ts";

/**
 * The path of one inference request: body → what it asks → who asks → its tokens and block hashes → the decision → the
 * endpoint's answer, which `Forward` carries back while it tells the router how it goes.
 */
export async function serveChat(exchange: Exchange): Promise<void> {
  const { context, incoming, route } = exchange;
  const { limits } = context;

  const body = await readBody(incoming, limits.bodyBytesMax);
  if (body === undefined || exchange.over) return;
  if (!Buffer.isBuffer(body)) return exchange.refuse(body);
  if (context.bodyBytesInFlight + body.length > limits.bodyBytesInFlightMax) return exchange.refuse(TOO_MANY_BYTES);
  exchange.holdBody(body.length);
  exchange.arrivedAt = nowMicros();

  const parsed = parseRequest(route, incoming.headers["content-type"] ?? "", body);
  if (isRefusal(parsed)) return exchange.refuse(parsed);
  exchange.stream = parsed.stream;
  const model = parsed.model === "" ? onlyModel(context.directory) : parsed.model;
  if (model === undefined) return exchange.refuse(noModel(context));

  const identity = context.identifier.identify(incoming.headers, parsed.fields);
  const encoded = encode(exchange, parsed, model);
  const prompt = encoded instanceof Promise ? await encoded : encoded;
  if (exchange.over) return;

  const request: RouteRequest = {
    id: exchange.routeId,
    model,
    ...identity,
    priority: priorityOf(exchange, parsed),
    promptTokens: Math.round(prompt.promptTokens * parsed.prompt.scale),
    promptTokensExact: prompt.exact && parsed.prompt.count === 1,
    outputTokensMax: parsed.outputTokensMax,
    sequences: parsed.sequences,
    blocks: prompt.blocks,
  };
  exchange.arrived(model);
  const decision = context.journal.accept({ kind: "request-arrived", at: nowMicros(), request });
  if (decision.kind === "rejected") return exchange.refuse(rejection(context, decision, model));

  context.retryBudget.earn();
  const hidesUsage = addsUsage(exchange, parsed);
  exchange.forward(new Forward(exchange, bodyFor(body, parsed, model, hidesUsage), decision, hidesUsage));
}

const TOO_MANY_BYTES = refusal("saturated", "The gateway holds as many request bytes as it may; try again later.");

const NO_PROMPT: TokenizedPrompt = { blocks: EMPTY_CHAIN, promptTokens: 0, exact: false, fellBack: false };

function encode(exchange: Exchange, parsed: ParsedRequest, model: string): TokenizedPrompt | Promise<TokenizedPrompt> {
  const { source, count } = parsed.prompt;
  if (source === undefined) return NO_PROMPT;
  const { context } = exchange;
  const tokenizer = context.tokenizer(model);
  const encoded = tokenizer.encode(source, { model, salt: parsed.cacheSalt });
  const note = (prompt: TokenizedPrompt): TokenizedPrompt => {
    if (prompt.fellBack) {
      context.counters.tokenizerFallbacks++;
      context.observe.tokenizerFellBack(model);
    }
    if (count === 1) exchange.learnWith((promptTokens) => tokenizer.learn(model, prompt, promptTokens));
    return prompt;
  };
  return encoded instanceof Promise ? encoded.then(note) : note(encoded);
}

/** vLLM lets a header go before the body. */
function priorityOf({ incoming }: Exchange, parsed: ParsedRequest): number {
  const header = incoming.headers["x-vllm-priority"];
  if (header === undefined) return parsed.priority;
  const priority = Number(header);
  return Number.isFinite(priority) ? priority : parsed.priority;
}

function noModel({ directory }: ChatContext): Refusal {
  if (directory.all().length === 0) return refusal("no-endpoint", "No engine is known to this gateway.");
  return refusal("bad-request", "`model` is required, since not exactly one model is served.", "model");
}

function rejection({ directory }: ChatContext, { reason }: Rejected, model: string): Refusal {
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
  return !isFields(options) || options["include_usage"] !== true;
}

/** The client's own bytes, but for a field that must be there. */
function bodyFor(body: Buffer, parsed: ParsedRequest, model: string, asksUsage: boolean): Buffer {
  const named = parsed.model === "" && parsed.fields !== undefined ? withField(body, "model", model) : body;
  if (!asksUsage) return named;
  const options = parsed.fields?.["stream_options"];
  const merged = { ...(isFields(options) ? options : {}), include_usage: true, continuous_usage_stats: false };
  return withField(named, "stream_options", merged);
}
