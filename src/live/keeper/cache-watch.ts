import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { RequestTable } from "#core/base/request-table.ts";
import { nowMicros } from "../base/clock.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import type { FaultEvent } from "../log/fault-log.ts";
import type { Intake, IntakeListener } from "../base/intake.ts";
import type { Micros } from "#core/base/units.ts";

export interface CacheWatchOptions {
  readonly intake: Intake;
  readonly directory: EndpointDirectory;
  readonly report: (event: FaultEvent) => void;
}

/** Requests in flight whose expectation is remembered; beyond that one shows nothing. */
const REQUESTS_MAX = 65_536;
/** Requests in a row of which many cached tokens were expected and none came. */
const NEVER_AFTER = 20;
const NEVER_DETAIL = "no expected prefix hit ever comes: is prefix caching off in its engine?";

interface Watched {
  readonly judge: ResetJudge;
  /** Since the last hit. */
  unmet: number;
}

interface Sent extends ExpectedHit {
  readonly endpoint: EndpointId;
}

/**
 * Holds what engines report as cached against what the inferred index expected. A cache that was found empty becomes an
 * input, so that decisions that follow from it replay; an engine that never has a hit is stated in the log and at its
 * endpoint.
 */
export class CacheWatch implements IntakeListener {
  readonly #options: CacheWatchOptions;
  readonly #blocks = new RequestTable<BlockChain>();
  readonly #sent = new RequestTable<Sent>();
  readonly #watched = new Map<EndpointId, Watched>();

  constructor(options: CacheWatchOptions) {
    this.#options = options;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (input.kind === "request-arrived" && this.#blocks.size < REQUESTS_MAX) {
      const { id, blocks } = input.request;
      this.#blocks.set(id, blocks);
    }
    if (decision?.kind === "routed") this.#routed(decision);
    else if (input.kind === "request-finished") this.#finished(input);
    else if (input.kind === "endpoint-left") this.#watched.delete(input.endpoint);
  }

  #routed({ requestId, endpoint, at, hitTokens, prefixSource, prefill }: Extract<Decision, { kind: "routed" }>): void {
    const blocks = this.#blocks.get(requestId);
    this.#sent.delete(requestId);
    if (blocks === undefined || blocks.length === 0 || prefill !== undefined || prefixSource !== "approximate") return;
    const recentTokens = this.#of(endpoint).judge.sent(blocks);
    this.#sent.set(requestId, { endpoint, sentAt: at, blocks, hitTokens, recentTokens });
  }

  #finished({ at, requestId, outcome, cachedTokens }: Extract<Input, { kind: "request-finished" }>): void {
    const sent = this.#sent.get(requestId);
    this.#blocks.delete(requestId);
    this.#sent.delete(requestId);
    if (sent === undefined || outcome !== "ok" || cachedTokens === undefined) return;
    const { endpoint } = sent;
    const watched = this.#of(endpoint);
    this.#count(endpoint, watched, sent.hitTokens, cachedTokens);
    if (watched.judge.answered(at, sent, cachedTokens)) this.#emptied(endpoint);
  }

  #of(endpoint: EndpointId): Watched {
    let watched = this.#watched.get(endpoint);
    if (watched === undefined) this.#watched.set(endpoint, (watched = { judge: new ResetJudge(), unmet: 0 }));
    return watched;
  }

  #emptied(endpoint: EndpointId): void {
    const { intake, report } = this.#options;
    // The others that listen have not seen this input yet.
    queueMicrotask(() => intake.accept({ kind: "blocks-cleared", at: nowMicros(), endpoint }));
    const detail = "its engine has none of the prompts that it had: somebody reset its cache, or it is another engine";
    report({ kind: "cache-emptied", endpoint, detail, done: "nothing of before is expected there any more" });
  }

  #count(endpoint: EndpointId, watched: Watched, expected: number, cachedTokens: number): void {
    const { directory, report } = this.#options;
    if (cachedTokens > 0) {
      const entry = watched.unmet < NEVER_AFTER ? undefined : directory.get(endpoint);
      if (entry?.detail === NEVER_DETAIL) entry.detail = "";
      watched.unmet = 0;
    } else if (expected >= EXPECTED_TOKENS_MIN && ++watched.unmet === NEVER_AFTER) {
      const entry = directory.get(endpoint);
      if (entry?.detail === "") entry.detail = NEVER_DETAIL;
      const done = "requests go on being sent where their prompts went";
      report({ kind: "hits-never-come", endpoint, detail: NEVER_DETAIL, done, figures: { requests: NEVER_AFTER } });
    }
  }
}

/** A prompt as it was sent to an endpoint, and what of it was believed to be cached there. */
export interface ExpectedHit {
  readonly sentAt: Micros;
  readonly blocks: BlockChain;
  readonly hitTokens: number;
  /** As `sent` returned it. */
  readonly recentTokens: number | undefined;
}

/** Tokens that have to be expected for their absence to be a sign: a block or two may always be evicted. */
export const EXPECTED_TOKENS_MIN = 128;
/** Answers without any token from before, one after the other, that show an empty cache; the first raises the suspicion. */
export const MISSES_UNTIL_EMPTY = 2;
/** Blocks sent since a suspicion; with more of them it is dropped. */
const RECENT_BLOCKS_MAX = 65_536;

/**
 * Judges from an endpoint's answers whether its engine lost its cache without a word: somebody reset it, or it was replaced.
 *
 * An answer that had no cached token at all where many were expected raises a suspicion. From there on an answer counts for
 * it that had nothing but what was sent there since, although more was expected; and one against it, which ends it, that
 * had a block of before. What evicts single chains leaves others, and they end it.
 */
export class ResetJudge {
  #emptyAt: Micros = -Infinity;
  #misses = 0;
  #recent: Set<number> | undefined;

  /** A prompt is sent there: tokens at its beginning that were sent there since a suspicion; undefined without one. */
  sent({ hashes, length, blockTokens }: BlockChain): number | undefined {
    const recent = this.#recent;
    if (recent === undefined) return undefined;
    let known = 0;
    while (known < length && recent.has(keyOf(hashes, known))) known++;
    for (let i = known; i < length; i++) recent.add(keyOf(hashes, i));
    if (recent.size > RECENT_BLOCKS_MAX) this.#acquit();
    return known * blockTokens;
  }

  /** It answered, and stated how many tokens were cached; true where its cache was emptied before. */
  answered(at: Micros, { sentAt, blocks, hitTokens, recentTokens }: ExpectedHit, cachedTokens: number): boolean {
    // What was expected before the cache was known to be empty was expected wrongly.
    if (sentAt <= this.#emptyAt) return false;
    if (this.#recent === undefined) {
      if (hitTokens >= EXPECTED_TOKENS_MIN && cachedTokens === 0) this.#suspect(blocks);
      return false;
    }
    // Of one that was on its way as the suspicion began nobody knows where its cached tokens are from.
    if (recentTokens === undefined && cachedTokens > 0) return false;
    const known = recentTokens ?? 0;
    if (cachedTokens >= known + blocks.blockTokens) this.#acquit();
    else if (hitTokens - known >= EXPECTED_TOKENS_MIN) this.#misses++;
    if (this.#misses < MISSES_UNTIL_EMPTY) return false;
    this.#acquit();
    this.#emptyAt = at;
    return true;
  }

  #suspect(blocks: BlockChain): void {
    this.#recent = new Set();
    this.#misses = 1;
    this.sent(blocks);
  }

  #acquit(): void {
    this.#recent = undefined;
    this.#misses = 0;
  }
}

/** 53 of a block's 64 bits. */
function keyOf(hashes: Int32Array, block: number): number {
  return (hashes[2 * block]! >>> 0) + (hashes[2 * block + 1]! & 0x1f_ffff) * 2 ** 32;
}
