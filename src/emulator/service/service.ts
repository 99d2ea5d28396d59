import { assert } from "#core/base/assert.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { EngineHost } from "./engine-host.ts";
import { FaultPlan } from "../fault/fault-plan.ts";
import { answerDraws, begunAnswer } from "../generation/answer-draws.ts";
import { hashBlocks, hashRoot } from "../generation/block-hash.ts";
import { naturalLength } from "../generation/natural-length.ts";
import { planOutput } from "../generation/output-plan.ts";
import {
  isComplete,
  newSequence,
  type SequencesAnswer,
  type EmulatedSequence,
  type SequenceSpec,
} from "../generation/sequence.ts";
import { HexIds } from "./hex-ids.ts";
import {
  ApiError,
  badRequest,
  KV_LOAD_FAILED,
  QUEUE_FULL,
  SHUTTING_DOWN,
  TOKEN_BACKLOG_FULL,
} from "../http/api-error.ts";
import { isOpen, type ServedRequest } from "../http/exchange.ts";
import { KvTransfer } from "../kv-transfer/kv-transfer.ts";
import type { DecodeRequest } from "../kv-transfer/transfer-request.ts";
import { AdapterMetrics } from "../metrics/adapter-metrics.ts";
import { EngineMetrics } from "../metrics/engine-metrics.ts";
import { HttpMetrics } from "../metrics/http-metrics.ts";
import { KvPublisher } from "../kv-events/publisher.ts";
import type { AnswerContext } from "../openai/answer-context.ts";
import { checkSampling, type Sampling } from "../generation/sampling.ts";
import type { PoolingOptions, ResolvedOptions } from "./options.ts";
import { SleepMode } from "./sleep-mode.ts";
import type { Piece, EngineTokenizer } from "../tokenizer/tokenizer.ts";

/**
 * `serving`: as usual. `draining`: asked to stop, running answers may end, new text prompts fail. `stopping`: asked to
 * stop at once. `dead`: the engine process is gone.
 */
export type ServicePhase = "serving" | "draining" | "stopping" | "dead";

/** A prompt with what the client asked of the answer, ready to become sequences. */
export interface PromptJob {
  readonly prompt: Int32Array;
  /** True when the client sent token ids: a draining server does not fail on those. */
  readonly fromIds: boolean;
  readonly sampling: Sampling;
  /** Model or adapter that answers. */
  readonly model: string;
  readonly firstChoice: number;
  /** True when scores of the prompt are wanted: its cache entries cannot be used then. */
  readonly scoresPrompt: boolean;
  readonly forced: readonly Piece[] | undefined;
}

/** What the routes share: the engine on its clock, the tokenizer, counters, limits, and the server's phase. */
export class Service {
  readonly options: ResolvedOptions;
  readonly tokenizer: EngineTokenizer;
  readonly host: EngineHost;
  /** Between requests and the engine. */
  readonly sleep: SleepMode;
  readonly engineMetrics: EngineMetrics;
  /** Paths by name, in the order in which they came. */
  readonly adapters: Map<string, string>;
  /** Undefined without adapters. */
  readonly adapterMetrics: AdapterMetrics | undefined;
  readonly httpMetrics = new HttpMetrics();
  readonly faultPlan: FaultPlan;
  readonly ids: HexIds;
  readonly fingerprint: string;
  readonly startedAtSeconds = Math.floor(Date.now() / MILLIS_PER_SECOND);
  phase: ServicePhase = "serving";
  /** Called by a fault that kills the engine. */
  onKill: () => void = () => undefined;
  /** Requests for an answer that the server holds. */
  load = 0;
  /** Sequences refused by an admission limit. */
  refused = 0;
  #sequences = 0;

  constructor(options: ResolvedOptions, tokenizer: EngineTokenizer) {
    this.options = options;
    this.tokenizer = tokenizer;
    this.engineMetrics = new EngineMetrics(options.model, options.engine.modelTokensMax);
    this.adapters = new Map(options.adapters.map(({ name, path }) => [name, path]));
    const serves = options.adapters.length > 0 || options.runtimeAdapters;
    this.adapterMetrics = serves ? new AdapterMetrics() : undefined;
    const { engine, kvEvents, seed, host, timeScale } = options;
    const drops = randomFor(seed, nameHash("kv-events"));
    const publisher = kvEvents && new KvPublisher(kvEvents, engine.blockTokens, host, drops);
    const { kvTransfer: transfer } = options;
    const engineId = nameHash(`${seed} ${Date.now()} ${process.pid}`).toString(16).padStart(8, "0");
    const transfers =
      transfer &&
      new KvTransfer(transfer, engine, engineId, randomFor(seed, nameHash("kv-transfer")), (hold) =>
        this.host.giveBack(hold),
      );
    this.host = new EngineHost(engine, timeScale, this.engineMetrics, this.adapterMetrics, publisher, transfers);
    this.sleep = new SleepMode(this.host);
    this.faultPlan = new FaultPlan(options.seed);
    this.ids = new HexIds(options.seed);
    const identity = JSON.stringify([options.model, options.engine, tokenizer.name]);
    this.fingerprint = `vllm-${options.version}-${nameHash(identity).toString(16).padStart(8, "0")}`;
  }

  isBaseModel(name: string): boolean {
    return name === this.options.model || this.options.servedModels.includes(name);
  }

  /** The name under which the answer goes out. Throws ApiError 404 for a model that is not served. */
  resolveModel(name: string): string {
    const { model, servedModels } = this.options;
    if (name === "" || this.isBaseModel(name)) return model;
    if (this.adapters.has(name)) return name;
    const aliases = [model, ...servedModels].join(", ");
    const message = `The model \`${name}\` does not exist. Valid aliases: ${aliases}.`;
    throw new ApiError(404, "NotFoundError", message, "model");
  }

  /** Throws ApiError 500, in the words of a server that is stopping. It has no CORS headers then. */
  checkServing(exchange: ServedRequest): void {
    if (this.phase === "serving") return;
    exchange.vary = false;
    throw SHUTTING_DOWN;
  }

  /** The ceiling on an answer. Throws ApiError 400 for a prompt beyond the context, and for what makes no sense. */
  resolveMaxTokens(prompt: Int32Array, fromIds: boolean, sampling: Sampling): number {
    const context = this.options.engine.modelTokensMax;
    if (prompt.length === 0) throw badRequest("The decoder prompt cannot be empty");
    if (prompt.length > context) throw tooLong(context, prompt.length, fromIds);
    const room = context - prompt.length;
    const maxTokens = sampling.maxTokens === undefined ? room : Math.min(sampling.maxTokens, room);
    checkSampling(sampling, maxTokens);
    return maxTokens;
  }

  /** Throws ApiError 503 when a limit on waiting requests or tokens is reached. */
  admit(sequences: number): void {
    const { queuedRequestsMax, queuedTokensMax } = this.options;
    if (this.host.gauges.waiting >= queuedRequestsMax) {
      this.refused += sequences;
      this.engineMetrics.rejected("max_num_queued_reqs");
      throw QUEUE_FULL;
    }
    if (this.host.waitingTokens < queuedTokensMax) return;
    this.refused += sequences;
    this.engineMetrics.rejected("max_num_queued_tokens");
    throw TOKEN_BACKLOG_FULL;
  }

  /**
   * One sequence per choice. Same prompt and parameters, same answer, whatever else the server does; and where the prompt
   * holds a part of an answer, the same rest.
   */
  sequencesOf(job: PromptJob, maxTokens: number, exchange: ServedRequest): EmulatedSequence[] {
    const { prompt, sampling, model } = job;
    const begun = begunAnswer(prompt, this.tokenizer.headerEnd);
    const generated = begun?.generated;
    const adapter = model === this.options.model ? "" : model;
    const root = hashRoot(adapter, sampling.cacheSalt);
    const group = { n: sampling.n, open: sampling.n, producedMax: 0 };
    return Array.from({ length: sampling.n }, (_, index) => {
      const stream = sampling.seed * 65_537 + index;
      const random = answerDraws(prompt, begun, stream);
      // A draw of its own must not stand between two tokens of an answer that goes on.
      const lengths = begun === undefined ? answerDraws(prompt, begun, stream) : random;
      const naturalTokens = naturalLength(lengths, this.options.naturalTokensMean);
      const plan = planOutput(this.tokenizer, random, sampling, {
        maxTokens,
        naturalTokens,
        generated,
        forced: job.forced,
      });
      return this.sequenceOf({
        choice: job.firstChoice + index,
        prompt,
        plan,
        hashes: hashBlocks(prompt, plan.tokens, this.options.engine.blockTokens, root),
        maxTokens,
        group,
        adapter,
        cacheSalt: sampling.cacheSalt,
        priority: sampling.priority,
        cacheRead: !job.scoresPrompt,
        abortAfterTokens: this.phase === "serving" ? exchange.faults.abortAfterTokens : 0,
        transfer: sampling.n === 1 && this.host.kvTransfer !== undefined ? sampling.transfer : undefined,
      });
    });
  }

  sequenceOf(spec: Omit<SequenceSpec, "id">): EmulatedSequence {
    return newSequence({ id: String(this.#sequences++), ...spec });
  }

  /** Runs an answer until it is complete or its client goes away. */
  run(exchange: ServedRequest, answer: SequencesAnswer): void {
    const { response } = exchange;
    this.load++;
    response.once("close", () => {
      this.load--;
      if (!isComplete(answer)) this.sleep.cancel(answer);
    });
    const [sequence] = answer.sequences;
    if (sequence?.transfer?.phase === "decode" && answer.sequences.length === 1)
      void this.#fetched(exchange, answer, sequence, sequence.transfer);
    else this.sleep.submit(answer);
  }

  /** Whether the blocks are where they are to come from is asked first; where they are not, the policy decides. */
  async #fetched(
    exchange: ServedRequest,
    answer: SequencesAnswer,
    sequence: EmulatedSequence,
    request: DecodeRequest,
  ): Promise<void> {
    const { kvTransfer } = this.host;
    const fetch = kvTransfer?.fetchOf(request);
    if ((await fetch?.held()) === true) sequence.fetch = fetch;
    else if (fetch !== undefined) kvTransfer?.missed(fetch);
    if (!isOpen(exchange)) return fetch?.end();
    if (sequence.fetch !== undefined || kvTransfer?.failurePolicy === "recompute") this.sleep.submit(answer);
    else {
      sequence.finish = "abort";
      answer.fail(KV_LOAD_FAILED);
    }
  }

  answerContext(
    exchange: ServedRequest,
    kind: "chatcmpl" | "cmpl" | "resp",
    model: string,
    sampling: Sampling,
  ): AnswerContext {
    const chosen = headerText(exchange, "x-request-id") || sampling.requestId || this.ids.next(2);
    const { forceIncludeUsage, enablePromptTokensDetails, engine } = this.options;
    const includeUsage = forceIncludeUsage || sampling.stream?.includeUsage === true;
    return {
      id: `${kind}${kind === "resp" ? "_" : "-"}${chosen}`,
      model,
      created: Math.floor(Date.now() / MILLIS_PER_SECOND),
      fingerprint: this.fingerprint,
      tokenizer: this.tokenizer,
      sampling,
      includeUsage,
      continuousUsage: forceIncludeUsage || (includeUsage && sampling.stream?.continuousUsage === true),
      promptTokensDetails: enablePromptTokensDetails,
      blockTokens: engine.blockTokens,
    };
  }

  /** vLLM's priority header wins over the body's field. */
  priorityOf(exchange: ServedRequest, sampling: Sampling): Sampling {
    const header = headerText(exchange, "x-vllm-priority");
    return /^-?\d+$/.test(header) ? { ...sampling, priority: Number(header) } : sampling;
  }
}

/** Of a server that has routes for it. */
export function poolingOf({ options }: Service): PoolingOptions {
  assert(options.pooling !== undefined, "a pooling route is there where the model pools");
  return options.pooling;
}

export function headerText(exchange: ServedRequest, name: string): string {
  const value = exchange.request.headers[name];
  return typeof value === "string" ? value : (value?.[0] ?? "");
}

/** vLLM counts a text only as far as it must; of token ids it knows the number. */
function tooLong(context: number, tokens: number, fromIds: boolean): ApiError {
  const counted = fromIds ? tokens : context + 1;
  const contains = fromIds ? `contains ${counted}` : `contains at least ${counted}`;
  const message = `This model's maximum context length is ${context} tokens. However, your prompt ${contains} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt.`;
  return badRequest(message, "input_tokens", String(counted));
}
