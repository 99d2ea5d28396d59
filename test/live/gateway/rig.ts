import assert from "node:assert/strict";
import { type Agent, type IncomingHttpHeaders, request as httpRequest } from "node:http";
import type { TlsOptions } from "node:tls";

import type { Decision } from "#core/input/decision.ts";
import { BREAKER_DEFAULTS, type BreakerOptions } from "#core/endpoint/breaker.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { Router } from "#core/router.ts";
import { nowMicros } from "#live/base/clock.ts";
import { EndpointDirectory, type EndpointEntry } from "#live/endpoints/endpoint-directory.ts";
import { ERRORS } from "#live/http/errors.ts";
import { type Gateway, type GatewayOptions, createGateway } from "#live/gateway/gateway.ts";
import { Intake } from "#live/base/intake.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import type { PromptSource, TokenizedPrompt, Tokenizer } from "#live/tokenizer/text/tokenizer.ts";

import { type Reply, StubEngine } from "./stub-engine.ts";

/** Equals go by id, so that a test knows where its first request goes. */
export const LOWEST_ID_FIRST: ProfileSpec = {
  filters: [],
  scorers: [{ plugin: "queue-depth", weight: 1, parameters: {} }],
  picker: { plugin: "max-score", parameters: {} },
};

/** A gateway over the real router and engines that answer with bytes. */
export interface Rig {
  readonly url: string;
  /** Of the port for operators; "" where nothing is served there. */
  readonly adminUrl: string;
  readonly gateway: Gateway;
  readonly router: Router;
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  /** Ids "a", "b", ... in order of the replies given; an untouched router prefers the lowest. */
  readonly engines: readonly StubEngine[];
  readonly inputs: Input[];
  readonly decisions: Decision[];
  readonly summaries: RequestSummary[];
  readonly retried: Fault[];
  /** What the log would get. */
  readonly faults: FaultEvent[];
  /** Inputs of the kinds given, of all requests, in order. */
  kinds(): string[];
  /** Stops all, after checking that every request ended exactly once and the ledger is empty. */
  close(): Promise<void>;
}

export interface RigOptions extends Partial<Omit<GatewayOptions, "journal" | "directory" | "observe">> {
  readonly models?: readonly string[];
  /** Of each engine in order, where they differ. */
  readonly modelsEach?: readonly (readonly string[])[];
  readonly entry?: Partial<EndpointEntry>;
  readonly breaker?: BreakerOptions;
  readonly profile?: ProfileSpec;
  /** Of each engine, in order of id; none where they are left out. */
  readonly labels?: readonly Readonly<Record<string, string>>[];
  /** Those that the replies make speak TLS. */
  readonly engineTls?: TlsOptions;
  /** Further engines, after those that the replies make. */
  readonly urls?: readonly string[];
}

/** An endpoint that fails is asked again at once, so that each request of a test meets it. */
export const NEVER_OPEN: BreakerOptions = {
  failuresMax: 1_000_000,
  pauseMicros: 0,
  pauseMicrosMax: 0,
  jitterShare: 0,
  saturatedPauseMicros: 0,
  drainingPauseMicros: 0,
};

export async function startRig(replies: readonly Reply[], options: RigOptions = {}): Promise<Rig> {
  const engines = await Promise.all(replies.map((reply) => new StubEngine(reply, options.engineTls).start()));
  const router = new Router({
    seed: 1,
    profiles: { default: options.profile ?? LOWEST_ID_FIRST },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
    breaker: options.breaker ?? BREAKER_DEFAULTS,
  });
  const intake = new Intake(router);
  const inputs: Input[] = [];
  const decisions: Decision[] = [];
  intake.listen({
    accepted(input, decision) {
      inputs.push(input);
      if (decision !== undefined) decisions.push(decision);
    },
  });
  const directory = new EndpointDirectory();
  [...engines.map(({ url }) => url), ...(options.urls ?? [])].forEach((url, i) => {
    const models = options.modelsEach?.[i] ?? options.models ?? ["tiny"];
    const entry = addEngine(directory, url, String.fromCodePoint(97 + i), { ...options, models });
    const labels = options.labels?.[i] ?? {};
    const endpoint = { id: entry.id, models, labels, kvCapacityTokens: undefined, concurrencyMax: undefined };
    intake.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
  });
  const summaries: RequestSummary[] = [];
  const retried: Fault[] = [];
  const faults: FaultEvent[] = [];
  const gateway = createGateway({
    tokenizer: () => WORD_TOKENIZER,
    identity: IDENTITY,
    ...options,
    limits: { sweepMillis: 10, ...options.limits },
    intake,
    directory,
    observe: {
      finished: (summary) => void summaries.push(summary),
      retried: (fault) => void retried.push(fault),
      tokenizerFellBack: () => {},
      fault: (event) => void faults.push(event),
    },
  });
  const { url } = await gateway.listen("127.0.0.1", 0);
  const { administration, adminRoutes } = options;
  const isAdministered = administration !== undefined || adminRoutes !== undefined;
  const adminUrl = isAdministered ? (await gateway.listenAdmin("127.0.0.1", 0)).url : "";
  const close = async (): Promise<void> => {
    await gateway.close(0);
    await Promise.all(engines.map((engine) => engine.kill().catch(() => {})));
    assertConserved(inputs, router, gateway);
    assertLogged(faults, gateway);
    assertReportedOnce(summaries, faults, gateway);
  };
  const kinds = () => inputs.map(({ kind }) => kind).filter((kind) => kind !== "endpoint-joined");
  return {
    url,
    adminUrl,
    gateway,
    router,
    intake,
    directory,
    engines,
    inputs,
    decisions,
    summaries,
    retried,
    faults,
    kinds,
    close,
  };
}

export const IDENTITY = {
  tenantHeaders: ["x-tenant-id"],
  sessionHeaders: ["x-session-id"],
  inForce: { profileHeader: undefined },
  sloHeaders: [],
  secret: "test",
};

function addEngine(directory: EndpointDirectory, url: string, id: string, options: RigOptions): EndpointEntry {
  const models = (options.models ?? ["tiny"]).map((model) => ({
    id: model,
    object: "model" as const,
    owned_by: "vllm",
  }));
  const entry: EndpointEntry = {
    id,
    url,
    dataParallelRank: undefined,
    apiKey: undefined,
    state: "ready",
    detail: "",
    models,
    ...options.entry,
  };
  directory.add(entry);
  return entry;
}

/** Every arrival has exactly one end, and nothing is charged to any endpoint. */
export function assertConserved(inputs: readonly Input[], router: Router, gateway: Gateway): void {
  const ends = new Map<string, number>();
  for (const input of inputs) if (input.kind === "request-arrived") ends.set(input.request.id, 0);
  for (const input of inputs) {
    if (input.kind !== "request-finished") continue;
    assert.ok(ends.has(input.requestId), `${input.requestId} ended without an arrival`);
    ends.set(input.requestId, ends.get(input.requestId)! + 1);
  }
  inputs.forEach(({ at }, i) =>
    assert.ok(at >= (inputs[i - 1]?.at ?? 0), `input ${i} is older than the one before it`),
  );
  for (const [id, count] of ends) assert.equal(count, 1, `${id} ended ${count} times`);
  assert.equal(router.openCharges, 0);
  assert.equal(router.inFlight, 0);
  assert.equal(router.strayInputs, 0);
  assert.equal(gateway.inFlight(), 0);
  assert.equal(gateway.counters.internalErrors, 0);
  for (const row of router.endpointRows(nowMicros())) {
    const { requestsInFlight, prefillTokensQueued, decodeTokens, promptTokensInFlight } = row;
    assert.deepEqual([requestsInFlight, prefillTokensQueued, decodeTokens, promptTokensInFlight], [0, 0, 0, 0]);
  }
}

/** Each failed attempt, each cut and each stalled client is one line of the log. */
function assertLogged(faults: readonly FaultEvent[], { counters }: Gateway): void {
  const logged = (...kinds: string[]): number => faults.filter(({ kind }) => kinds.includes(kind)).length;
  const failed = Object.values(counters.faults).reduce((sum, count) => sum + count, 0);
  assert.equal(logged("attempt-failed", "retry-denied"), failed);
  assert.equal(logged("retry-denied"), counters.retriesDenied.budget);
  assert.equal(logged("answer-cut"), counters.cuts);
  assert.equal(logged("client-stalled"), counters.clientStalls);
}

/**
 * Each request is counted once. One that was sent and got no whole answer of an engine's has one line about its end, unless its
 * client left; one that the gateway itself refused is in the count of its reason, too.
 */
function assertReportedOnce(
  summaries: readonly RequestSummary[],
  faults: readonly FaultEvent[],
  { counters }: Gateway,
): void {
  const named = summaries.flatMap(({ routeId = [] }) => routeId);
  assert.equal(new Set(named).size, named.length, "each is counted once");
  const refusals = summaries.filter(({ reason }) => Object.hasOwn(ERRORS, reason));
  for (const [reason, refused] of Map.groupBy(refusals, (one) => one.reason))
    assert.equal(refused.length, counters.refused[reason as keyof typeof ERRORS], reason);
  const isCut = ({ outcome }: RequestSummary): boolean => outcome === "failed" || outcome === "timeout";
  const expected = summaries.filter((one) => one.attempts > 0 && (isCut(one) || refusals.includes(one)));
  // What is served beside inference has no attempts and no summary.
  const attempts = faults.filter(({ figures }) => figures?.["attempts"] !== undefined);
  const ends = attempts.filter(({ kind, done }) => END_KINDS.has(kind) && !done.startsWith("sent to "));
  const ids = (of: readonly { readonly requestId?: string }[]) =>
    of.map(({ requestId = "" }) => requestId).toSorted((a, b) => (a < b ? -1 : 1));
  assert.deepEqual(ids(ends), ids(expected.filter(({ outcome }) => outcome !== "aborted")));
}

const END_KINDS: ReadonlySet<FaultEvent["kind"]> = new Set([
  "attempt-failed",
  "retry-denied",
  "answer-cut",
  "turned-away",
]);

/** One token per word; blocks of four. Learns what it is told, for tests to look at. */
export const LEARNT: number[] = [];
export const WORD_TOKENIZER: Tokenizer = {
  name: "estimate",
  encode: (prompt) => encodeWords(prompt),
  learn: (_model, _prompt, promptTokens) => void LEARNT.push(promptTokens),
  close: () => {},
};

export function encodeWords(prompt: PromptSource): TokenizedPrompt {
  const words =
    prompt.kind === "tokens"
      ? prompt.tokens.map(String)
      : (prompt.kind === "text" ? prompt.text : JSON.stringify(prompt.messages)).split(/\s+/);
  const length = Math.floor(words.length / 4);
  const hashes = new Int32Array(2 * length);
  let hash = 17;
  for (let i = 0; i < length; i++) {
    for (const character of words.slice(4 * i, 4 * i + 4).join(" "))
      hash = (Math.imul(hash, 31) + character.codePointAt(0)!) | 0;
    hashes[2 * i] = hash;
    hashes[2 * i + 1] = i;
  }
  return { blocks: { hashes, length, blockTokens: 4 }, promptTokens: words.length, exact: false, fellBack: false };
}

/** What a client got. */
export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The connection broke before the message was whole. */
  readonly cut: boolean;
}

export interface Ask {
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly agent?: Agent;
  /** The answer's head came. */
  readonly onHead?: () => void;
}

/** One request over its own connection, unless an agent is given. */
export function ask(url: string, body: string | Buffer | object | undefined, how: Ask = {}): Promise<Got> {
  const { path = "/v1/chat/completions", method = "POST", headers = {}, agent, onHead } = how;
  const text = body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const { hostname: host, port } = new URL(url);
    const sent = httpRequest(
      { host, port, path, method, agent: agent ?? false, headers: { "content-type": "application/json", ...headers } },
      (response) => {
        onHead?.();
        const chunks: Buffer[] = [];
        const done = (cut: boolean): void =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
            cut,
          });
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => done(false));
        response.on("error", () => done(true));
      },
    );
    sent.on("error", reject);
    sent.end(text);
  });
}

export const CHAT = { model: "tiny", messages: [{ role: "user", content: "Say hello to the world, please." }] };

export function errorOf(got: Got): { message: string; type: string; param: string | null; code: number } {
  const { error } = JSON.parse(got.body) as { error: ReturnType<typeof errorOf> };
  assert.deepEqual(Object.keys(error), ["message", "type", "param", "code"]);
  return error;
}
