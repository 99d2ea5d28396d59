import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import { FAULTS } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { AnswerKnown, Input, RequestContinued, RequestFinished } from "#core/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request.ts";
import type { Slo } from "#core/slo.ts";
import { KEPT_REASONS } from "#core/cascade/cascade-input.ts";
import { decodeJudged, encodeJudged } from "./judged-codec.ts";
import { type Fields, TraceFormatError } from "./fields.ts";
import { decodeHashes, encodeHashes } from "./hash-text.ts";
import { decodeLoad, encodeLoad } from "./load-codec.ts";
import { number } from "./number.ts";
import { decodeVerdict, encodeVerdict } from "./verdict-codec.ts";
import { decodePolicy, encodePolicy } from "./policy-codec.ts";
import { decodePeerReported, encodePeer } from "./peer-codec.ts";
import { decodeAttempt, encodeAttempt } from "./prefill-codec.ts";
import { decodeReport, encodeReport } from "./report-codec.ts";
import { decodeProfile } from "./profile-codec.ts";
import { decodeRollout, encodeRollout, isRolloutKind } from "./rollout-codec.ts";

const OUTCOMES: readonly Outcome[] = ["ok", "failed", "aborted", "timeout", "refused"];

/**
 * The fields of an input as the inside of a JSON object, without its chains, which the caller writes. Fields at their
 * usual value ("", 0, 1, undefined) are left out.
 */
export function encodeInput(input: Input): string {
  const head = `"kind":"${input.kind}","at":${input.at}`;
  switch (input.kind) {
    case "request-arrived":
      return `${head},"request":${encodeRequest(input.request)}`;
    case "request-retried":
    case "request-hedged":
    case "request-released":
    case "first-token":
    case "answer-known":
      return `${head},"requestId":${JSON.stringify(input.requestId)}${"answerHashes" in input ? answer(input) : ""}`;
    case "progress":
      return `${head},"requestId":${JSON.stringify(input.requestId)},"outputTokens":${number(input.outputTokens)}`;
    case "hedge-settled":
    case "attempt-failed":
    case "prefill-finished":
    case "prefill-failed":
    case "transfer-failed":
      return `${head},"requestId":${JSON.stringify(input.requestId)}${encodeAttempt(input)}`;
    case "request-moved":
      return `${head},"requestId":${JSON.stringify(input.requestId)},"endpoint":${JSON.stringify(input.endpoint)}`;
    case "request-continued":
      return `${head},"requestId":${JSON.stringify(input.requestId)},"fault":"${input.fault}","outputTokens":${number(input.outputTokens)}${answer(input)}${input.byText === true ? ',"byText":true' : ""}`;
    case "request-escalated":
      return `${head}${encodeJudged(input)},"request":${encodeRequest(input.request)}`;
    case "answer-judged":
      return `${head}${encodeJudged(input)},"kept":"${input.kept}"`;
    case "request-finished":
      return `${head},"requestId":${JSON.stringify(input.requestId)},"outcome":"${input.outcome}"${counts(input)}`;
    case "load-observed":
      return `${head},"endpoint":${JSON.stringify(input.endpoint)},"load":${encodeLoad(input.load)}`;
    case "endpoint-joined":
    case "endpoint-changed":
    case "endpoint-cordoned":
    case "endpoint-uncordoned":
      return `${head},"endpoint":${JSON.stringify(input.endpoint)}`;
    case "endpoint-left":
      return `${head},"endpoint":${JSON.stringify(input.endpoint)}${input.lost === true ? ',"lost":true' : ""}`;
    case "endpoint-checked":
    case "endpoint-slept":
    case "endpoint-suspended":
    case "endpoint-resumed":
      return `${head},"endpoint":${JSON.stringify(input.endpoint)}${encodeVerdict(input)}`;
    case "block-size-changed":
      return `${head},"blockTokens":${input.blockTokens}`;
    case "profile-changed":
      return `${head},"name":${JSON.stringify(input.name)},"profile":${JSON.stringify(input.profile)}`;
    case "policy-changed":
      return `${head},${encodePolicy(input)}`;
    case "rollout-planned":
    case "rollout-step":
    case "rollout-removed":
    case "rollout-restored":
    case "rollout-look":
    case "rollout-predicted":
    case "sessions-restored":
      return `${head}${encodeRollout(input)}`;
    case "peer-reported":
    case "peer-left":
      return `${head},${encodePeer(input)}`;
    case "blocks-stored":
    case "blocks-removed":
    case "blocks-cleared":
    case "kv-events-alive":
    case "kv-events-missed":
    case "kv-events-lost":
      return `${head},"endpoint":${JSON.stringify(input.endpoint)}${encodeReport(input)}`;
  }
}

/** Reads an input back. `chain` gives the blocks of a request that arrives, or of a peer's, one after another. */
export function decodeInput(fields: Fields, chain: () => BlockChain): Input {
  const at = fields.integer("at", 0);
  const kind = fields.string("kind") as Input["kind"];
  if (isRolloutKind(kind)) return decodeRollout(kind, at, fields);
  switch (kind) {
    case "request-arrived":
      return { kind, at, request: decodeRequest(fields.object("request"), chain()) };
    case "request-retried":
    case "request-hedged":
    case "request-released":
    case "first-token":
      return { kind, at, requestId: fields.string("requestId") };
    case "progress":
      return { kind, at, requestId: fields.string("requestId"), outputTokens: fields.integer("outputTokens", 0) };
    case "hedge-settled":
    case "attempt-failed":
    case "prefill-finished":
    case "prefill-failed":
    case "transfer-failed":
      return decodeAttempt(kind, at, fields);
    case "request-moved":
      return { kind, at, requestId: fields.string("requestId"), endpoint: fields.string("endpoint") };
    case "request-continued":
      return decodeContinued(at, fields);
    case "request-escalated":
      return { kind, at, ...decodeJudged(fields), request: decodeRequest(fields.object("request"), chain()) };
    case "answer-judged":
      return { kind, at, ...decodeJudged(fields), kept: fields.oneOf("kept", KEPT_REASONS) };
    case "request-finished":
      return decodeFinished(at, fields);
    case "answer-known":
      return { kind, at, requestId: fields.string("requestId"), ...decodeAnswer(fields) };
    case "load-observed":
      return { kind, at, endpoint: fields.string("endpoint"), load: decodeLoad(fields.object("load")) };
    case "endpoint-joined":
    case "endpoint-changed":
      return { kind, at, endpoint: decodeEndpoint(fields.object("endpoint")) };
    case "endpoint-left":
      return { kind, at, endpoint: fields.string("endpoint"), ...(fields.boolean("lost", false) && { lost: true }) };
    case "endpoint-cordoned":
    case "endpoint-uncordoned":
    case "endpoint-checked":
    case "endpoint-slept":
    case "endpoint-suspended":
    case "endpoint-resumed":
      return decodeVerdict(kind, at, fields);
    case "block-size-changed":
      return { kind, at, blockTokens: fields.blockTokens("blockTokens") };
    case "profile-changed":
      return { kind, at, name: fields.string("name"), profile: decodeProfile(fields.object("profile")) };
    case "policy-changed":
      return decodePolicy(at, fields);
    case "blocks-stored":
    case "blocks-removed":
    case "blocks-cleared":
    case "kv-events-alive":
    case "kv-events-missed":
    case "kv-events-lost":
      return decodeReport(kind, at, fields);
    case "peer-reported":
      return decodePeerReported(at, fields, chain);
    case "peer-left":
      return { kind, at, peer: fields.string("peer") };
    default:
      throw new TraceFormatError(
        "unknown-kind",
        `kind: expected a kind of version 1, got ${JSON.stringify(kind satisfies never)}`,
      );
  }
}

export function decodeEndpoint(fields: Fields): Endpoint {
  const labels = fields.object("labels");
  return {
    id: fields.string("id"),
    models: fields.strings("models"),
    labels: Object.fromEntries(labels.keys().map((key) => [key, labels.string(key)])),
    kvCapacityTokens: fields.optionalNumber("kvCapacityTokens"),
    concurrencyMax: fields.optionalNumber("concurrencyMax"),
    ...(fields.has("dataParallel") ? { dataParallel: fields.integer("dataParallel", 2) } : {}),
    ...(fields.has("stepTimes") && { stepTimes: decodeStepTimes(fields.object("stepTimes")) }),
  };
}

function decodeStepTimes(fields: Fields): StepTimes {
  return {
    stepMicros: fields.number("stepMicros"),
    prefillTokenMicros: fields.number("prefillTokenMicros"),
    sequenceMicros: fields.number("sequenceMicros"),
    contextTokenMicros: fields.number("contextTokenMicros"),
    stepTokensMax: fields.integer("stepTokensMax", 1),
  };
}

function encodeRequest(request: RouteRequest): string {
  let text = `{"id":${JSON.stringify(request.id)},"model":${JSON.stringify(request.model)},"promptTokens":${number(request.promptTokens)}`;
  if (request.promptTokensExact) text += `,"promptTokensExact":true`;
  if (request.tenant !== "") text += `,"tenant":${JSON.stringify(request.tenant)}`;
  if (request.user !== undefined) text += `,"user":${JSON.stringify(request.user)}`;
  if (request.session !== "") text += `,"session":${JSON.stringify(request.session)}`;
  if (request.sloClass !== "") text += `,"sloClass":${JSON.stringify(request.sloClass)}`;
  if (request.priority !== 0) text += `,"priority":${number(request.priority)}`;
  if (request.outputTokensMax !== undefined) text += `,"outputTokensMax":${number(request.outputTokensMax)}`;
  if (request.sequences !== 1) text += `,"sequences":${number(request.sequences)}`;
  if (request.cacheRead === false) text += `,"cacheRead":false`;
  if (request.timeoutMicros !== undefined) text += `,"timeoutMicros":${number(request.timeoutMicros)}`;
  if (request.slo !== undefined) text += `,"slo":${JSON.stringify(request.slo)}`;
  if (request.subset !== undefined) text += `,"subset":${JSON.stringify(request.subset)}`;
  if (request.profile !== "") text += `,"profile":${JSON.stringify(request.profile)}`;
  if (request.undivided === true) text += `,"undivided":true`;
  if (request.ownProfile === true) text += `,"ownProfile":true`;
  return `${text}}`;
}

function decodeRequest(fields: Fields, blocks: BlockChain): RouteRequest {
  return {
    id: fields.string("id"),
    model: fields.string("model"),
    tenant: fields.string("tenant", ""),
    ...(fields.has("user") && { user: fields.string("user") }),
    session: fields.string("session", ""),
    sloClass: fields.string("sloClass", ""),
    priority: fields.number("priority", 0),
    promptTokens: fields.number("promptTokens"),
    promptTokensExact: fields.boolean("promptTokensExact", false),
    outputTokensMax: fields.optionalNumber("outputTokensMax"),
    sequences: fields.integer("sequences", 1, 1),
    blocks,
    ...(fields.boolean("cacheRead", true) ? {} : { cacheRead: false }),
    ...(fields.has("timeoutMicros") && { timeoutMicros: fields.integer("timeoutMicros", 1) }),
    ...(fields.has("slo") && { slo: decodeSlo(fields.object("slo")) }),
    ...(fields.has("subset") ? { subset: fields.strings("subset") } : {}),
    profile: fields.string("profile", ""),
    ...(fields.boolean("undivided", false) && { undivided: true }),
    ...(fields.boolean("ownProfile", false) && { ownProfile: true }),
  };
}

function decodeSlo(fields: Fields): Slo {
  return {
    ...(fields.has("ttftMicros") && { ttftMicros: fields.integer("ttftMicros", 1) }),
    ...(fields.has("tpotMicros") && { tpotMicros: fields.integer("tpotMicros", 1) }),
  };
}

function counts(finished: RequestFinished): string {
  const { promptTokens, cachedTokens, outputTokens, answerFollows } = finished;
  let text = "";
  if (promptTokens !== undefined) text += `,"promptTokens":${number(promptTokens)}`;
  if (cachedTokens !== undefined) text += `,"cachedTokens":${number(cachedTokens)}`;
  if (outputTokens !== undefined) text += `,"outputTokens":${number(outputTokens)}`;
  text += answer(finished);
  if (answerFollows === true) text += `,"answerFollows":true`;
  return text;
}

function answer({ answerHashes }: Pick<AnswerKnown, "answerHashes">): string {
  return answerHashes === undefined ? "" : `,"answerLanes":"${encodeHashes(answerHashes)}"`;
}

function decodeAnswer(fields: Fields): Pick<AnswerKnown, "answerHashes"> {
  if (!fields.has("answerLanes")) return {};
  return { answerHashes: decodeHashes(fields.string("answerLanes"), fields.pathOf("answerLanes")) };
}

function decodeContinued(at: number, fields: Fields): RequestContinued {
  return {
    kind: "request-continued",
    at,
    requestId: fields.string("requestId"),
    fault: fields.oneOf("fault", FAULTS),
    outputTokens: fields.integer("outputTokens", 0),
    ...decodeAnswer(fields),
    ...(fields.boolean("byText", false) && { byText: true }),
  };
}

function decodeFinished(at: number, fields: Fields): RequestFinished {
  return {
    kind: "request-finished",
    at,
    requestId: fields.string("requestId"),
    outcome: fields.oneOf("outcome", OUTCOMES),
    promptTokens: fields.optionalInteger("promptTokens", 0),
    cachedTokens: fields.optionalInteger("cachedTokens", 0),
    outputTokens: fields.optionalInteger("outputTokens", 0),
    ...decodeAnswer(fields),
    ...(fields.boolean("answerFollows", false) ? { answerFollows: true } : {}),
  };
}
