import type { Rejected, Routed } from "#core/input/decision.ts";
import { EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import type { AnswerJudge, AnswerJudges } from "../answer/answer-judge.ts";
import type { AnswerReader } from "../answer/answer-reader.ts";
import { chooseReader, type ReaderShared } from "../answer/choose-reader.ts";
import { type Refusal, refusal } from "../http/errors.ts";
import { NameSwap } from "../answer/name-swap.ts";
import { nowMicros } from "../base/clock.ts";
import { onlyModel, servedModels, unknownModelMessage } from "../endpoints/models.ts";
import { isFields, type Fields, laxBoolean } from "../base/fields.ts";
import type { RequestObserver } from "../log/request-observer.ts";
import type { OnDecided, RequestRouter } from "./request-router.ts";
import { type Asker, AskerLeft } from "../base/loop-turn.ts";
import type { StoredResponses, ResponsePlace } from "../beside/stored-responses.ts";
import type { ModelRewrites } from "../discovery/workload-rules.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import {
  type EngineFields,
  type Stripped,
  countEngineHeaders,
  priorityOf,
  stripEngineFields,
  engineBody,
} from "../request/engine-body.ts";
import type { KnownBodies } from "../request/known-bodies.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { CountedPrompt } from "../base/decisive.ts";
import type { TokenizedPrompt, Tokenizer } from "../tokenizer/text/tokenizer.ts";
import type { GatewayLimits } from "../http/limits.ts";
import { isRefusal, type ParsedRequest, parseRequest, tokensByPrompt, truncated } from "../request/parse-request.ts";
import type { RequestHeaders } from "../http/headers.ts";
import type { Route } from "../http/route.ts";
import type { Identifier, Identity } from "../http/identity.ts";
import type { Promised, SloRules } from "../request/slo-rules.ts";

/** What requests share on their way to a decision. */
export interface AskingShared extends ClientShared, ReaderShared {
  readonly router: RequestRouter;
  readonly directory: EndpointDirectory;
  readonly tokenizer: (model: string) => Tokenizer;
  readonly observe: RequestObserver;
  /** Undefined where there is none. */
  readonly judges: AnswerJudges | undefined;
  /** Beginnings of chats that were read before. */
  readonly knownBodies: KnownBodies;
  /** Where answers of /v1/responses are stored. */
  readonly responses: StoredResponses;
  /** Asks engines for usage where the client did not, and keeps the added chunk from it. */
  readonly requestUsage: boolean;
  /** What of clients' requests is for engines alone. */
  readonly engineFields: EngineFields;
  /** Clients authenticate to the gateway, so that their keys are not the engines'. */
  readonly keepsAuthorization: boolean;
  /** Somebody behind judges requests: what cannot be read here goes there as it came, and nothing is refused for it. */
  readonly passesUnread: boolean;
}

/** An inference request as every host has it: the gateway's own exchange, or a proxy's question for an endpoint. */
export interface AskingRequest extends Asker {
  readonly shared: AskingShared;
  readonly limits: GatewayLimits;
  readonly headers: RequestHeaders;
  readonly route: Route;
  /** As the router knows it. */
  readonly routeId: string;
  /** Somebody else writes the answer, and would not keep an added chunk from the client. */
  readonly answeredElsewhere?: true;
  /** Endpoints that it may go to; any where undefined. */
  readonly subset?: readonly string[] | undefined;
  /** How long its client waits, where it stated that. */
  readonly timeoutMicros?: Micros | undefined;
  arrivedAt: Micros;
  model: string;
  /** As of Identity; "" before it is known. */
  tenant: string;
  stream: boolean;
  /** Answers that its engine makes side by side. */
  sequences: number;
  prompt: CountedPrompt;
  answerReader: AnswerReader | undefined;
  /** Judges its answers, where it asked for a name of what does. */
  judge?: AnswerJudge | undefined;
  /** Where it goes to a model of another name than its client asked for, and the answer is to have that one. */
  nameSwap?: NameSwap | undefined;
  /** Time that it waited for its turn. */
  queuedMicros: Micros;
  /** The decision that no endpoint may serve it. */
  rejected: Rejected | undefined;
  /** Once the engine has reported its own count of the prompt, the tokenizer is to be given it. */
  expectCount(tokenizer: Tokenizer, tokenized: TokenizedPrompt): void;
  /** The router is about to be informed of the request's arrival; from here on it must be informed of its end. */
  arrived(): void;
  refuse(refused: Refusal): void;
  bug(error: unknown): void;
}

/** What follows a decision: the endpoint, the body that it gets, and whether usage was added to its stream. */
export type OnRouted = (decision: Routed, body: Buffer, hidesUsage: boolean) => void;

/** Prepares what a host keeps of an answer; returns fields that the engine has to get for it. */
export type PrepareKept = (parsed: ParsedRequest, prompt: TokenizedPrompt) => object | undefined;

/**
 * From a whole body to the decision, the same for every host: what it asks, who asks, its tokens and block hashes, the
 * router. Either `routed` is called, or the request is refused; a defect on the way is the request's own.
 */
export function askBody(
  asking: AskingRequest,
  body: Buffer,
  routed: OnRouted,
  keep: PrepareKept = () => undefined,
): void {
  try {
    ask({ asking, body, routed, keep });
  } catch (error) {
    asking.bug(error);
  }
}

/** The same for a request of which only the headers are known: it goes to an endpoint that serves anything at all. */
export function askWithoutBody(asking: AskingRequest, routed: (decision: Routed) => void): void {
  const { shared } = asking;
  const model = onlyModel(shared.directory) ?? servedModels(shared.directory)[0]?.id;
  if (model === undefined) return asking.refuse(noModel(shared));
  asking.model = model;
  countEngineHeaders(asking);
  const by = askedBy(asking, undefined);
  if (isRefusal(by)) return asking.refuse(by);
  acceptBodiless(asking, by, routed);
}

/** The same where its body is not there: nothing is known of it, and it goes on all the same, if requests may. */
export function askUnread(asking: AskingRequest, why: Refusal, routed: (decision: Routed) => void): void {
  try {
    asking.arrivedAt = nowMicros();
    unread({ asking, body: NO_BODY, routed, keep: () => undefined }, why);
  } catch (error) {
    asking.bug(error);
  }
}

/** What it asks cannot be read here: it is refused, or goes on as it came. */
function unread({ asking, body, routed }: Question, refused: Refusal): void {
  const { shared, headers } = asking;
  if (!shared.passesUnread) return asking.refuse(refused);
  countUp(shared.counters.passedUnread, refused.reason);
  const identity = shared.identifier.identify(headers, undefined);
  asking.tenant = identity.tenant;
  acceptBodiless(asking, { identity, profile: "", promised: { sloClass: "" } }, (decision) =>
    routed(decision, body, false),
  );
}

function acceptBodiless(asking: AskingRequest, by: AskedBy, routed: (decision: Routed) => void): void {
  const { model } = asking;
  const { tenant, user, session } = by.identity;
  const request: RouteRequest = {
    id: asking.routeId,
    model,
    tenant,
    ...(user !== "" && user !== tenant && { user }),
    session,
    ...by.promised,
    priority: 0,
    promptTokens: 0,
    promptTokensExact: false,
    outputTokensMax: undefined,
    sequences: 1,
    blocks: EMPTY_CHAIN,
    ...(asking.subset !== undefined && { subset: asking.subset }),
    profile: by.profile,
  };
  accept(asking, request, routed);
}

interface Question {
  readonly asking: AskingRequest;
  /** Endpoints that it may go to; any where undefined. */
  readonly subset?: readonly string[] | undefined;
  readonly body: Buffer;
  readonly routed: OnRouted;
  readonly keep: PrepareKept;
}

function ask(question: Question): void {
  const { asking, body } = question;
  const { shared, limits, headers, route } = asking;
  asking.arrivedAt = nowMicros();
  const parsed = parseRequest(route, headers.get("content-type"), body, limits, asking, shared.knownBodies);
  if (parsed instanceof Promise) later(asking, parsed, (known) => strip(question, known));
  else strip(question, parsed);
}

/** Without what is for engines alone. */
function strip(question: Question, parsed: ParsedRequest | Refusal): void {
  const { asking, body } = question;
  if (isRefusal(parsed)) return unread(question, parsed);
  countEngineHeaders(asking);
  const goOn = (stripped: Stripped | Refusal): void => {
    if (isRefusal(stripped)) asking.refuse(stripped);
    else askParsed({ ...question, body: stripped.body }, stripped.parsed);
  };
  const stripped = stripEngineFields(asking, parsed, body);
  if (stripped === undefined) askParsed(question, parsed);
  else if (stripped instanceof Promise) later(asking, stripped, goOn);
  else goOn(stripped);
}

function askParsed(question: Question, parsed: ParsedRequest): void {
  const { asking } = question;
  const { shared } = asking;
  asking.stream = parsed.stream;
  asking.sequences = parsed.sequences;
  const asked = parsed.model === "" ? onlyModel(shared.directory) : parsed.model;
  if (asked === undefined) return unread(question, noModel(shared));
  const named = rewritten(asking, asked, parsed);
  const model = shared.judges?.begin(asking, named, parsed, question.body) ?? named;
  asking.model = model;
  // Of a judged answer the client learns which model gave it.
  if (model !== asked && model === named) asking.nameSwap = new NameSwap(model, asked);
  const subset = shared.passesUnread ? undefined : subsetFollowing(asking, parsed);
  if (subset instanceof Promise) later(asking, subset, (known) => askAt(question, parsed, known));
  else askAt(question, parsed, subset);
}

/** Goes on once it is known at which endpoints it may be answered; anywhere where undefined. */
function askAt(question: Question, parsed: ParsedRequest, subset: Subset): void {
  const { asking } = question;
  if (asking.over) return;
  if (subset !== undefined && isRefusal(subset)) return asking.refuse(subset);
  tokenize({ ...question, subset }, parsed);
}

function tokenize(question: Question, parsed: ParsedRequest): void {
  const { asking } = question;
  const { shared, model } = asking;
  const { source } = parsed.prompt;
  if (source === undefined || asking.route.countsOnly) return decide(question, parsed, NO_PROMPT);
  const tokenizer = shared.tokenizer(model);
  const encoded = tokenizer.encode(source, { model, salt: parsed.cacheSalt }, asking);
  if (encoded instanceof Promise) {
    later(asking, encoded, (prompt) => decide(question, parsed, prompt, tokenizer));
  } else decide(question, parsed, encoded, tokenizer);
}

/** The model that it gets in place of the one it names, where the cluster has it so; a form's parts stay as they are. */
function rewritten({ shared, headers, routeId }: AskingRequest, model: string, { fields }: ParsedRequest): string {
  const { rewrites } = shared.inForce;
  if (rewrites === undefined || fields === undefined) return model;
  const { session } = shared.identifier.identify(headers, fields);
  return rewrites.targetOf(model, session === "" ? routeId : session);
}

/** Goes on once it is known, unless the client left meanwhile, which also ends the work. */
function later<T>(asking: AskingRequest, promised: Promise<T>, goOn: (known: T) => void): void {
  promised.then(goOn).catch((error: unknown) => {
    if (!(error instanceof AskerLeft)) asking.bug(error);
  });
}

function decide(question: Question, parsed: ParsedRequest, whole: TokenizedPrompt, tokenizer?: Tokenizer): void {
  const { asking, body, routed, keep, subset } = question;
  if (asking.over) return;
  const { shared, model } = asking;
  const prompt = truncated(whole, parsed.fields);
  // The engine's count of a prompt that it cuts, or puts behind a stored response, is not that of the text.
  const isAll = prompt === whole && followedBy(asking, parsed) === undefined;
  if (tokenizer !== undefined && parsed.prompt.count === 1 && isAll) asking.expectCount(tokenizer, prompt);
  if (prompt.fellBack) shared.observe.tokenizerFellBack(model);
  const hidesUsage = addsUsage(asking, parsed);
  const isIndexed = parsed.answersTokenIds || shared.answersIndexed === "text";
  if (isIndexed && prompt === whole && asking.judge === undefined) {
    const { dialect } = asking.route;
    asking.answerReader = chooseReader(shared, { parsed, dialect, prompt, tokenizer, addsUsage: hidesUsage });
  }
  const by = askedBy(asking, parsed.fields);
  if (isRefusal(by)) return unread(question, by);
  const { tenant, user, session, profile } = by.identity;
  const each = tokensByPrompt(whole, prompt, parsed.prompt, parsed.fields);
  const request: RouteRequest = {
    id: asking.routeId,
    model,
    tenant,
    session,
    ...by.promised,
    priority: priorityOf(asking, parsed),
    promptTokens: each === undefined ? prompt.promptTokens : Math.round(each.reduce((sum, tokens) => sum + tokens)),
    promptTokensExact: prompt.exact && parsed.prompt.count === 1 && followedBy(asking, parsed) === undefined,
    outputTokensMax: parsed.outputTokensMax,
    sequences: parsed.sequences,
    blocks: prompt.blocks,
    profile: by.profile,
    ...(user !== "" && user !== tenant && { user }),
    // Of others that have several, as embeddings, nothing is simulated.
    ...(each !== undefined && asking.route.dialect === "completions" && { tokensByPrompt: each.map(Math.round) }),
    ...(!parsed.cacheRead && { cacheRead: false }),
    ...(!isDivisible(asking, parsed) && { undivided: true }),
    ...(asking.timeoutMicros !== undefined && { timeoutMicros: asking.timeoutMicros }),
    ...(subset !== undefined && { subset }),
    ...(profile !== "" && { ownProfile: true }),
  };
  asking.prompt = { promptTokens: request.promptTokens, exact: request.promptTokensExact };
  const { judge } = asking;
  judge?.arrives(request, hidesUsage);
  accept(asking, request, (decision) => {
    // A part of a judged answer has no form in which another engine could go on behind it.
    const more = judge === undefined ? keep(parsed, prompt) : judge.fields;
    routed(decision, engineBody(body, parsed, model, { hidesUsage, more }), hidesUsage);
  });
}

/** The router's decision, once it is this request's turn; a rejection refuses it. */
function accept(asking: AskingRequest, request: RouteRequest, routed: (decision: Routed) => void): void {
  asking.arrived();
  const decided: OnDecided = (decision, queuedMicros) => {
    asking.queuedMicros = queuedMicros;
    try {
      if (decision.kind === "rejected") reject(asking, decision);
      else routed(decision);
    } catch (error) {
      asking.bug(error);
    }
  };
  asking.shared.router.arrive(request, asking.arrivedAt, decided);
}

/** There is no endpoint for it, or admission keeps it out. */
function reject(asking: AskingRequest, rejected: Rejected): void {
  const { counters, directory } = asking.shared;
  if (rejected.limit !== undefined) countUp(counters.limited, rejected.limit);
  asking.rejected = rejected;
  asking.refuse(refusalOf(rejected, asking.model, directory));
}

const NO_BODY = Buffer.alloc(0);
const NO_PROMPT: TokenizedPrompt = { blocks: EMPTY_CHAIN, promptTokens: 0, exact: false, fellBack: false };

/** Whether one endpoint may compute its prompt and another one answer: of another kind of request nobody knows how. */
function isDivisible({ route, answeredElsewhere }: AskingRequest, { fields }: ParsedRequest): boolean {
  if (answeredElsewhere === true || (route.dialect !== "chat" && route.dialect !== "completions")) return false;
  // Somebody in front shares it already.
  return fields !== undefined && !SHARED_ALREADY.some((name) => (fields[name] ?? null) !== null);
}

const SHARED_ALREADY = ["kv_transfer_params", "bootstrap_room"];

function noModel({ directory }: AskingShared): Refusal {
  if (directory.all().length === 0) return refusal("no-endpoint", "No engine is known to this gateway.");
  if (servedModels(directory).length === 0) return refusal("no-endpoint", "No engine has reported what it serves yet.");
  return refusal("bad-request", "`model` is required, since not exactly one model is served.", "model");
}

/**
 * Where the gateway is to ask for usage: a stream of OpenAI's whose client did not ask itself. What engines refuse is left to
 * them: another value in its place would hide from the client what is wrong.
 */
function addsUsage({ shared, answeredElsewhere, route }: AskingRequest, { stream, fields }: ParsedRequest): boolean {
  if (!shared.requestUsage || answeredElsewhere === true || !stream) return false;
  if (route.dialect !== "chat" && route.dialect !== "completions") return false;
  const options = fields?.["stream_options"] ?? {};
  if (!isFields(options)) return false;
  const { include_usage: usage, continuous_usage_stats: continuous } = options;
  return laxBoolean(usage ?? false) === false && laxBoolean(continuous ?? false) !== undefined;
}

interface AskedBy {
  readonly identity: Identity;
  /** That decides; "" is the router's default. */
  readonly profile: string;
  readonly promised: Promised;
}

/** By what clients are known, and what they get. */
interface ClientShared {
  readonly identifier: Identifier;
  readonly slo: SloRules;
  readonly inForce: ChoiceInForce;
}

/** What stands for what requests name, as it is now: whoever changes it writes it here. */
export interface ChoiceInForce {
  /** Profile for a model, where the request asked for `asked`; "" is none, and the router's default. */
  readonly profileOf: (model: string, asked: string) => string | Refusal;
  /** Models that requests get in place of those that they name; undefined for none. */
  readonly rewrites: ModelRewrites | undefined;
}

export const AS_ASKED: ChoiceInForce = { profileOf: (_model, asked) => asked, rewrites: undefined };

interface Asking {
  readonly shared: ClientShared;
  readonly headers: RequestHeaders;
  readonly model: string;
  tenant: string;
}

/** Who asks, by which profile, and what they are promised; a refusal where the profile or a target cannot be. */
function askedBy(asking: Asking, fields: Fields | undefined): AskedBy | Refusal {
  const { shared, headers, model } = asking;
  const identity = shared.identifier.identify(headers, fields);
  asking.tenant = identity.tenant;
  const profile = shared.inForce.profileOf(model, identity.profile);
  if (typeof profile !== "string") return profile;
  const promised = shared.slo.of(headers, identity, model);
  if (typeof promised === "string") return refusal("bad-request", promised);
  return { identity, profile, promised };
}

/** Endpoints that a request may go to, any where undefined; or why it can go to none. */
type Subset = readonly string[] | Refusal | undefined;

/** The stored response that a request goes on behind; undefined where there is none. */
function followedBy({ route }: Pick<AskingRequest, "route">, { fields }: ParsedRequest): string | undefined {
  const id = route.dialect === "responses" ? fields?.["previous_response_id"] : undefined;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/**
 * Those of a request's endpoints that have the response which it follows: only the engine that made it can go on behind it.
 * Where nobody knows which one did, any engine answers that.
 */
function subsetFollowing(asking: AskingRequest, parsed: ParsedRequest): Subset | Promise<Subset> {
  const id = followedBy(asking, parsed);
  const { shared, headers, routeId: requestId, subset } = asking;
  if (id === undefined) return subset;
  const { keepsAuthorization: dropAuthorization, engineFields } = shared;
  const call = { headers, requestId, dropAuthorization, withheld: engineFields.headers };
  const place = shared.responses.placeOf(id, call);
  return place instanceof Promise ? place.then((known) => within(known, id, subset)) : within(place, id, subset);
}

function within(place: ResponsePlace, id: string, subset: readonly string[] | undefined): Subset {
  if (place === "gone") return refusal("unknown-response", `Response with id '${id}' not found.`, "response_id");
  if (place === "unknown") return subset;
  return place.filter((endpoint) => subset === undefined || subset.includes(endpoint));
}

/** Longest time that Retry-After asks for. */
const RETRY_SECONDS_MAX = 3_600;

/** What the client of a rejected request gets. */
function refusalOf(rejected: Rejected, model: string, directory: EndpointDirectory): Refusal {
  const { reason, retryMicros } = rejected;
  if (reason === "unknown-model") return refusal(reason, unknownModelMessage(directory, model), "model");
  if (reason === "excluded") {
    const none = `The filters of profile ${rejected.profile} take none of the engines that serve this model.`;
    return refusal("no-endpoint", none);
  }
  const refused = refusal(reason, MESSAGES[reason]);
  if (retryMicros === undefined) return refused;
  const seconds = Math.ceil(retryMicros / MICROS_PER_SECOND);
  return { ...refused, retryAfterSeconds: Math.min(RETRY_SECONDS_MAX, Math.max(1, seconds)) };
}

const MESSAGES: Readonly<Record<Exclude<Rejected["reason"], "unknown-model" | "excluded">, string>> = {
  "no-endpoint": "No engine is ready for this request.",
  asleep: "All engines that serve this model are asleep; try again once one of them is awake.",
  saturated: "All engines that serve this model are at their limit; try again later.",
  "bucket-empty": "Too many tokens were asked for in too short a time; try again later.",
  "rate-limit": "Too many requests came in too short a time; try again later.",
  "tenant-quota": "Too many of your requests are being served already; try again later.",
  "usage-quota": "The quota of requests or tokens for this period is used up; try again later.",
  "hard-cap": "The gateway's limit of concurrent requests is reached; try again later.",
  "model-cap": "The limit of concurrent requests for this model is reached; try again later.",
  shed: "The engines are saturated, and requests of this class are not served meanwhile; try again later.",
  "queue-full": "Too many requests wait already; try again later.",
  "queue-timeout": "No engine had room for this request in time; try again later.",
  "queue-evicted": "Too many requests wait, and this one had to make room; try again later.",
};
