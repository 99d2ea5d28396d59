import { type Endpoint, type Load } from "#core/endpoint/endpoint.ts";
import { FAULTS } from "#core/endpoint/fault.ts";
import type { HangReason } from "#core/endpoint/hang-reason.ts";
import { KV_EVENTS_LOST_REASONS } from "#core/endpoint/knowledge.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { Input } from "#core/input/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { BLOCK_WORDS_MAX } from "#core/prompt/block-hash.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { OBSERVED_BY, type ObservedPlace } from "#core/request/observed-place.ts";
import type { Slo } from "#core/request/slo.ts";
import { expected, TraceFormatError } from "./format-error.ts";
import { admission } from "./admission-table.ts";
import { hashes } from "./chain-table.ts";
import {
  as,
  type Beside,
  bool,
  type FieldType,
  flag,
  integer,
  type JsonFields,
  listOf,
  mapOf,
  maybe,
  number,
  oneOf,
  optional,
  text,
  usually,
} from "./field-type.ts";
import type { JsonBytes } from "./json-bytes.ts";
import { OUTCOMES, peerReport } from "./peer-table.ts";
import { profile, profiles } from "./profile-table.ts";
import { record, type RecordType, type TablesByKind } from "./record-type.ts";
import { rolloutInputs } from "./rollout-table.ts";
import { stageInputs } from "./stage-table.ts";

const HANG_REASONS: readonly HangReason[] = ["silent", "stalled"];

export const blockTokens = integer(1, BLOCK_WORDS_MAX);

export const endpoint = record<Endpoint>({
  id: text,
  models: listOf(text),
  labels: mapOf(text),
  kvCapacityTokens: maybe(number),
  concurrencyMax: maybe(number),
  dataParallel: optional(integer(2)),
  stepTimes: optional(
    record<StepTimes>({
      stepMicros: number,
      prefillTokenMicros: number,
      sequenceMicros: number,
      contextTokenMicros: number,
      stepTokensMax: integer(1),
    }),
  ),
});

const load = record<Load>({
  running: maybe(number),
  waiting: maybe(number),
  kvUtilization: maybe(number),
  prefixHitRatio: maybe(number),
  ttftMicros: maybe(number),
  tpotMicros: maybe(number),
  tokensPerSecond: maybe(number),
  adaptersRunning: maybe(listOf(text)),
  adaptersWaiting: maybe(listOf(text)),
  adaptersMax: maybe(number),
  watts: maybe(number),
  smUtilization: maybe(number),
});

/** The encoder writes them beside the record, each block once. */
const blocks: FieldType<BlockChain> = {
  write: () => {},
  omits: () => true,
  read: (_value, _parent, _key, beside) => beside.chain(),
};

const request = record<RouteRequest>({
  id: text,
  model: text,
  promptTokens: number,
  promptTokensExact: usually(false, bool),
  tenant: usually("", text),
  user: optional(text),
  session: usually("", text),
  sloClass: usually("", text),
  priority: usually(0, number),
  outputTokensMax: maybe(number),
  sequences: usually(1, integer(1)),
  tokensByPrompt: optional(listOf(integer(0))),
  blocks,
  cacheRead: optional(bool),
  timeoutMicros: optional(integer(1)),
  slo: optional(record<Slo>({ ttftMicros: optional(integer(1)), tpotMicros: optional(integer(1)) })),
  subset: optional(listOf(text)),
  profile: usually("", text),
  undivided: flag,
  ownProfile: flag,
});

const observedPlace = record<ObservedPlace>({ endpoint: text, by: oneOf(OBSERVED_BY), sure: number });

const requestId = text;
const fault = oneOf(FAULTS);
const outputTokens = integer(0);
const answerHashes = optional(as("answerLanes", hashes));
const medium = optional(oneOf(["host"]));

function checkPolicy(policy: Body<"policy-changed">): void {
  if (!Object.hasOwn(policy.profiles, policy.defaultProfile))
    throw expected("defaultProfile", "the name of one of its profiles", policy.defaultProfile);
}

function checkStarts({ hashes: words, starts = [] }: Body<"blocks-stored">): void {
  starts.forEach((start, i) => {
    if (start <= (starts[i - 1] ?? 0) || 2 * start >= words.length)
      throw expected("starts", "ascending places of blocks", starts);
  });
}

type WithoutTime<T> = T extends unknown ? Omit<T, "at"> : never;
type Body<K extends Input["kind"]> = Omit<Extract<Input, { readonly kind: K }>, "kind" | "at">;

/**
 * Everything that reaches the router, as a trace has it beside its time: the description that both ways follow. A field
 * that came after the first traces is optional, or has what stands for it in them as its usual value.
 */
const tables: TablesByKind<WithoutTime<Input>, "kind"> = {
  "endpoint-joined": record({ endpoint }),
  "endpoint-changed": record({ endpoint }),
  "endpoint-left": record<Body<"endpoint-left">>({ endpoint: text, lost: flag }),
  "endpoint-cordoned": record({ endpoint: text }),
  "endpoint-uncordoned": record({ endpoint: text }),
  "endpoint-checked": record({ endpoint: text, healthy: bool }),
  "endpoint-slept": record<Body<"endpoint-slept">>({ endpoint: text, asleep: bool, emptied: flag }),
  "endpoint-suspended": record({ endpoint: text, reason: oneOf(HANG_REASONS) }),
  "endpoint-resumed": record({ endpoint: text, servedUntilWell: integer(0) }),
  "profile-changed": record({ name: text, profile }),
  "policy-changed": record<Body<"policy-changed">>(
    { version: integer(1), source: text, defaultProfile: text, profiles, admission: optional(admission) },
    checkPolicy,
  ),
  ...rolloutInputs,
  "block-size-changed": record({ blockTokens }),
  "request-arrived": record<Body<"request-arrived">>({
    request,
    observed: optional(observedPlace),
    heldMicros: optional(integer(1)),
  }),
  "request-released": record({ requestId }),
  "request-retried": record({ requestId }),
  "request-moved": record({ requestId, endpoint: text }),
  ...stageInputs(request),
  "attempt-failed": record({ requestId, fault }),
  "prefill-finished": record({ requestId, cachedTokens: maybe(integer(0)) }),
  "prefill-failed": record({ requestId, fault }),
  "transfer-failed": record({ requestId }),
  "first-token": record({ requestId }),
  progress: record({ requestId, outputTokens }),
  "request-finished": record<Body<"request-finished">>({
    requestId,
    outcome: oneOf(OUTCOMES),
    promptTokens: maybe(integer(0)),
    cachedTokens: maybe(integer(0)),
    outputTokens: maybe(outputTokens),
    answerHashes,
    answerFollows: flag,
  }),
  "answer-known": record<Body<"answer-known">>({ requestId, answerHashes }),
  "load-observed": record({ endpoint: text, load }),
  "peer-reported": record<Body<"peer-reported">>(peerReport),
  "peer-left": record({ peer: text }),
  "blocks-stored": record<Body<"blocks-stored">>(
    { endpoint: text, hashes: as("lanes", hashes), starts: optional(listOf(integer(1))), medium },
    checkStarts,
  ),
  "blocks-removed": record<Body<"blocks-removed">>({
    endpoint: text,
    hashes: as("lanes", hashes),
    unknownBlocks: optional(integer(0)),
    medium,
  }),
  "blocks-cleared": record<Body<"blocks-cleared">>({ endpoint: text, inOrder: flag }),
  "kv-events-alive": record({ endpoint: text, isComplete: as("complete", usually(false, bool)) }),
  "kv-events-missed": record({ endpoint: text }),
  "kv-events-lost": record({ endpoint: text, reason: oneOf(KV_EVENTS_LOST_REASONS) }),
};

const byKind = tables as unknown as Readonly<Record<string, RecordType<object>>>;
/** What a line of each kind begins with. */
const HEADS: ReadonlyMap<string, Uint8Array> = new Map(
  Object.keys(tables).map((kind) => [kind, Buffer.from(`,"kind":"${kind}","at":`)]),
);
const at = integer(0);

/** As fields of a JSON object. Chains of prompts are written by the caller. */
export function encodeInput(input: Input, to: JsonBytes, beside: Beside): void {
  to.bytes(HEADS.get(input.kind)!);
  to.number(input.at);
  byKind[input.kind]!.fields(input, to, beside);
}

/** Reads an input back; `beside` gives the blocks of a request that arrives, or of a peer's, one after another. */
export function decodeInput(line: JsonFields, beside: Beside): Input {
  const kind = text.read(line["kind"], undefined, "kind", beside);
  if (!Object.hasOwn(byKind, kind))
    throw new TraceFormatError("unknown-kind", `kind: expected a kind of version 1, got ${JSON.stringify(kind)}`);
  const time = at.read(line["at"], undefined, "at", beside);
  return { kind, at: time, ...byKind[kind]!.readFields(line, undefined, beside) } as Input;
}
