import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { RecentMap } from "#core/base/recent-map.ts";
import type { Breakdown, Decision, Routed } from "#core/input/decision.ts";
import {
  type AnswerKnown,
  type Input,
  isAsking,
  type RequestArrived,
  type RequestFinished,
} from "#core/input/input.ts";
import type { Insertion } from "#core/prefix/prefix-index.ts";
import { type BlockChain, continued } from "#core/prompt/block-chain.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { asksForStandby } from "#core/request/stage-inputs.ts";
import type { RecordedDecision, TraceItem } from "#trace/codec/record.ts";
import { type CapacityOf, EngineCaches, type RememberedBounds } from "./engine-caches.ts";
import { type LossPart, lossParts, type Offer, type TokenLevels } from "./token-loss.ts";

/** One request's prompt tokens: `promptTokens` = new ones + `possible`, `possible` = `hit` + all of `losses`. */
export interface TokenRow {
  readonly requestId: string;
  readonly tenant: string;
  /** Where it was sent last; "" for nowhere. */
  readonly endpoint: EndpointId;
  readonly promptTokens: number;
  readonly possible: number;
  readonly hit: number;
  /** The hit is what the engine's cache held by its size: it reported none. */
  readonly isModelled: boolean;
  /** What its engine held is the engine's own word, by its KV events; otherwise by its cache's size. */
  readonly isByEvents: boolean;
  readonly losses: readonly LossPart[];
  /** The gateway believed that the chosen endpoint held so many. */
  readonly expected: number;
  /** Where another engine held more: which, how much, what weighed more, and by how much. */
  readonly elsewhere?: Elsewhere;
}

export interface Elsewhere {
  readonly endpoint: EndpointId;
  readonly tokens: number;
  /** The scorer or filter that decided against it; "" where none did alone, or where another router decided. */
  readonly against: string;
  /** Lead of the chosen one over it, of all weights together. */
  readonly lead: number;
}

/** A request on its way. */
interface Open {
  readonly route: RouteRequest;
  /** Of its latest decision; undefined before one. */
  sent?: Sent;
  /** An ideal cache had so many blocks when it came. */
  readonly asked: number;
  readonly asking: Insertion;
  refused: boolean;
  /** A proxy took it to another endpoint than was chosen: what was weighed is not what was done. */
  moved: boolean;
  /** Another router sent it, and nobody saw where. */
  readonly isPlaceUnknown: boolean;
}

interface Sent {
  endpoint: EndpointId;
  readonly levels: Omit<TokenLevels, "possible" | "hit" | "chosenLater">;
  readonly elsewhere: Elsewhere | undefined;
  /** Blocks that its engine held at the decision: by its own word and by its size, and whether the former counts. */
  readonly eventBlocks: number;
  readonly modelled: number;
  readonly isByEvents: boolean;
  /** The least by its own word since, up to the first token. */
  eventBlocksLeast: number;
  /** Blocks that its engine held at its first token; -1 before. */
  later: number;
  /** The prompt with the blocks of the answer so far, once it was computed. */
  chain: BlockChain;
  readonly receipt: Insertion;
}

/** Requests in flight that are remembered; beyond it the oldest is left out. */
const OPEN_MAX = 1_000_000;
const AWAITED_MAX = 1_024;
/** Why a request has no row that its caller did not want. */
export const BEYOND_LIMIT = "beyond --limit";

export interface LedgerBounds {
  /** Rows of the first so many requests, or of the latest; of all where both are left out. */
  readonly first?: number;
  readonly latest?: number;
  readonly openMax?: number;
  readonly remembered?: RememberedBounds;
}

/**
 * Where the cached tokens of recorded or simulated traffic were lost: takes every input with its decision, in order, and
 * has a row for each request that ended.
 */
export class TokenLedger {
  readonly rows: TokenRow[] = [];
  readonly #left = new Map<string, number>();
  readonly #caches: EngineCaches;
  readonly #open = new Map<string, Open>();
  /** By endpoint, requests whose prompts it has not computed yet, where its events say what its cache holds. */
  readonly #waiting = new Map<EndpointId, Set<Open>>();
  /** Of ended requests, whose answers' blocks follow. */
  readonly #awaited = new RecentMap<string, { readonly endpoint: EndpointId; readonly blocks: BlockChain }>(
    AWAITED_MAX,
  );
  /** Another router decided: what it knew and weighed is not in the trace. */
  #isForeign = false;
  readonly #firstMax: number;
  readonly #latestMax: number;
  readonly #openMax: number;

  constructor(
    capacityOf: CapacityOf,
    { first = Infinity, latest = Infinity, openMax = OPEN_MAX, remembered }: LedgerBounds = {},
  ) {
    this.#caches = new EngineCaches(capacityOf, remembered);
    this.#firstMax = first;
    this.#latestMax = latest;
    this.#openMax = openMax;
  }

  /** Requests without a row, by reason. */
  get left(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#left);
  }

  takeItem(item: TraceItem): void {
    // What engines reported in between nobody knows.
    if (item.kind === "gap") return this.#caches.forgetReports();
    if (item.kind === "record") return this.take(item.input, item.decision);
    // A new run of the recorder knows nothing of the one before.
    this.#leave("in flight when their run ended", this.#open.size);
    this.#open.clear();
    this.#waiting.clear();
    this.#caches.leaveAll();
    this.#isForeign = item.header.observed !== undefined;
    for (const endpoint of item.header.endpoints) this.#caches.join(endpoint);
  }

  take(input: Input, decision: Decision | RecordedDecision | undefined): void {
    switch (input.kind) {
      case "endpoint-joined":
      case "endpoint-changed":
        this.#caches.join(input.endpoint);
        break;
      case "endpoint-left":
        this.#caches.leave(input.endpoint);
        break;
      case "endpoint-slept":
        if (input.emptied === true) this.#caches.clear(input.endpoint);
        break;
      case "blocks-cleared":
      case "blocks-removed":
        this.#caches.report(input);
        this.#lost(input.endpoint);
        break;
      case "blocks-stored":
      case "kv-events-alive":
      case "kv-events-missed":
      case "kv-events-lost":
        this.#caches.report(input);
        break;
      case "block-size-changed":
        this.#caches.forgetAll();
        break;
      case "request-arrived":
        this.#arrived(input);
        break;
      case "prefill-finished":
      case "first-token":
        this.#computed(this.#open.get(input.requestId));
        break;
      case "progress":
        this.#grown(this.#open.get(input.requestId), input.outputTokens);
        break;
      case "request-moved":
        this.#moved(this.#open.get(input.requestId), input.endpoint);
        break;
      case "request-finished":
        this.#finished(input);
        break;
      case "answer-known":
        this.#answered(input);
        break;
      default:
    }
    if (decision !== undefined && isAsking(input) && !asksForStandby(input)) this.#decided(decision);
  }

  #leave(reason: string, count = 1): void {
    if (count > 0) this.#left.set(reason, (this.#left.get(reason) ?? 0) + count);
  }

  #arrived({ request: route, observed }: RequestArrived): void {
    const [oldest] = this.#open.size < this.#openMax ? [] : this.#open.keys();
    if (oldest !== undefined && this.#open.delete(oldest)) this.#leave("more in flight than are remembered");
    this.#caches.match(route.blocks, route.promptTokensExact);
    const isPlaceUnknown = observed?.by === "none";
    const { asked } = this.#caches;
    const asking = this.#caches.ask(route.blocks);
    this.#open.set(route.id, { route, asked, asking, refused: false, moved: false, isPlaceUnknown });
  }

  #decided(decision: Decision | RecordedDecision): void {
    const open = this.#open.get(decision.requestId);
    if (open === undefined || decision.kind === "queued") return;
    open.refused = decision.kind === "rejected";
    this.#unsent(open);
    if (decision.kind === "rejected") return;
    const { blocks, promptTokensExact } = open.route;
    const endpoint = decision.prefill?.endpoint ?? decision.endpoint;
    this.#caches.match(blocks, promptTokensExact);
    open.sent = this.#sentTo(endpoint, decision, blocks);
    if (!open.sent.isByEvents) return;
    const waiting = this.#waiting.get(endpoint) ?? new Set();
    this.#waiting.set(endpoint, waiting.add(open));
  }

  /** Where it was sent it was not computed. */
  #unsent(open: Open): void {
    const { sent } = open;
    if (sent === undefined) return;
    this.#waiting.get(sent.endpoint)?.delete(open);
    if (sent.later < 0) this.#caches.withdraw(sent.receipt);
  }

  /** The engine let blocks go: those who wait there may have less of their prompts. */
  #lost(endpoint: EndpointId): void {
    for (const { route, sent } of this.#waiting.get(endpoint) ?? []) {
      if (sent === undefined || sent.eventBlocksLeast === 0) continue;
      sent.eventBlocksLeast = Math.min(sent.eventBlocksLeast, this.#caches.eventBlocksOf(endpoint, route.blocks));
    }
  }

  #sentTo(
    endpoint: EndpointId,
    {
      breakdown,
      hitTokens,
      heldTokens,
      prefill,
    }: Pick<Routed, "hitTokens" | "heldTokens" | "prefill"> & { readonly breakdown: Breakdown },
    chain: BlockChain,
  ): Sent {
    const caches = this.#caches;
    const tokens = (blocks: number) => Math.round(blocks * chain.blockTokens);
    const isForeign = this.#isForeign || breakdown.candidates.length === 0;
    const rows = new Map((prefill?.breakdown ?? breakdown).candidates.map((row, i) => [row.endpoint, { row, i }]));
    const isWhole = rows.size >= ("endpointCount" in breakdown ? (breakdown.endpointCount as number) : rows.size);
    let [most, ever, known] = [0, caches.everAt(endpoint), 0];
    let holder: EndpointId | undefined;
    for (const other of caches.endpoints) {
      ever = Math.max(ever, caches.everAt(other));
      if (other === endpoint) continue;
      const held = caches.blocksAt(other);
      const believed = rows.get(other)?.row.hitTokens ?? 0;
      known = Math.max(known, Math.min(tokens(held), Math.round(believed)));
      // Of equal ones, one that the gateway might have chosen.
      if (held > most || (held === most && held > 0 && !rows.has(holder!) && rows.has(other)))
        [most, holder] = [held, other];
    }
    const isOffered = isForeign || holder === undefined || rows.has(holder);
    const offer: Offer = isOffered ? "candidate" : isWhole ? "absent" : "unrecorded";
    const stage = prefill ?? { hitTokens, heldTokens };
    return {
      endpoint,
      levels: {
        chosenThen: tokens(caches.blocksAt(endpoint)),
        believedChosen: isForeign ? 0 : Math.round(stage.heldTokens ?? stage.hitTokens),
        elsewhere: tokens(most),
        knownElsewhere: isForeign ? tokens(most) : known,
        offer,
        everHere: tokens(ever),
        everComputed: tokens(caches.computed),
        everSent: tokens(caches.sent),
      },
      elsewhere:
        holder === undefined
          ? undefined
          : {
              endpoint: holder,
              tokens: tokens(most),
              ...(isForeign ? NOT_SEEN : against(prefill?.breakdown ?? breakdown, endpoint, holder)),
            },
      eventBlocks: caches.eventBlocksAt(endpoint),
      modelled: caches.modelledAt(endpoint),
      isByEvents: caches.isByEvents(endpoint),
      eventBlocksLeast: caches.eventBlocksAt(endpoint),
      later: -1,
      chain,
      receipt: caches.send(chain),
    };
  }

  /** Its engine has computed its prompt: what it holds from now on, and what it still held of it before. */
  #computed(open: Open | undefined): void {
    const sent = open?.sent;
    if (open === undefined || sent === undefined || sent.later >= 0) return;
    this.#waiting.get(sent.endpoint)?.delete(open);
    this.#caches.match(open.route.blocks, false);
    sent.later = sent.isByEvents ? sent.eventBlocksLeast : this.#caches.modelledAt(sent.endpoint);
    this.#caches.compute(sent.endpoint, open.route.blocks);
  }

  /** Its answer is so long: what it holds is in use, and more than it was. */
  #grown(open: Open | undefined, outputTokens: number): void {
    const sent = open?.sent;
    if (open === undefined || sent === undefined || sent.later < 0) return;
    const { route } = open;
    const { blockTokens } = route.blocks;
    const full = Math.floor((route.promptTokens + Math.max(0, outputTokens - 1)) / blockTokens);
    if (full > sent.chain.length)
      sent.chain = continued(sent.chain, this.#caches.unknownBlocks(full - sent.chain.length));
    this.#caches.occupy(sent.endpoint, sent.chain);
  }

  #moved(open: Open | undefined, endpoint: EndpointId): void {
    if (open?.sent === undefined) return;
    this.#waiting.get(open.sent.endpoint)?.delete(open);
    open.sent.endpoint = endpoint;
    open.moved = true;
  }

  #finished(end: RequestFinished): void {
    const open = this.#open.get(end.requestId);
    if (open === undefined) return this.#leave("its arrival is not in the trace");
    this.#open.delete(end.requestId);
    const { outcome, outputTokens, answerHashes } = end;
    const { sent, route } = open;
    if (outcome === "ok" || (outputTokens ?? 0) > 0) this.#computed(open);
    this.#grown(open, outputTokens ?? 0);
    if (sent !== undefined && sent.later >= 0) {
      const { endpoint } = sent;
      if (answerHashes !== undefined) this.#caches.answer(endpoint, continued(route.blocks, answerHashes));
      else if (end.answerFollows === true) this.#awaited.set(end.requestId, { endpoint, blocks: route.blocks });
    }
    this.#unsent(open);
    const isTurnedDown = (outcome === "refused" || outcome === "failed") && isUncomputed(open);
    if (isTurnedDown) this.#caches.withdraw(open.asking);
    if (open.isPlaceUnknown) this.#leave("nobody knows where another router sent it");
    else if (open.moved) this.#leave("taken to another endpoint than was chosen");
    else if (isTurnedDown && outcome === "refused") this.#leave("refused by an engine");
    else if (outcome === "ok" || outcome === "refused") this.#close(open, end);
    else this.#leave(outcome);
  }

  /** An answer's tokens became known after its end. */
  #answered({ requestId, answerHashes }: AnswerKnown): void {
    const awaited = this.#awaited.get(requestId);
    this.#awaited.delete(requestId);
    if (awaited !== undefined && answerHashes !== undefined)
      this.#caches.answer(awaited.endpoint, continued(awaited.blocks, answerHashes));
  }

  #close({ route, sent, asked, refused }: Open, end: RequestFinished): void {
    if (this.rows.length >= this.#firstMax) return this.#leave(BEYOND_LIMIT);
    // An eighth at a time.
    if (this.rows.length >= this.#latestMax)
      this.rows.splice(0, this.rows.length - Math.floor((7 / 8) * this.#latestMax));
    const { blocks, cacheRead, tenant, id, promptTokensExact } = route;
    const promptTokens = Math.max(1, Math.round(end.promptTokens ?? route.promptTokens));
    // The last token is computed in any case.
    const readable = Math.floor((promptTokens - 1) / blocks.blockTokens);
    const tokens = (count: number) => Math.round(count * blocks.blockTokens);
    const isRefused = refused || end.outcome === "refused" || sent === undefined;
    // Of several prompts vLLM reports those of the last one alone, and the blocks are the first one's.
    const reported = isRefused ? 0 : route.tokensByPrompt === undefined ? end.cachedTokens : undefined;
    const hit = Math.min(promptTokens, Math.round(reported ?? Math.min(tokens(readable), tokens(sent?.later ?? 0))));
    const ideal = cacheRead === false ? 0 : tokens(Math.min(asked, readable));
    const possible = Math.max(hit, ideal);
    if (reported !== undefined && sent !== undefined && promptTokensExact && cacheRead !== false)
      this.#caches.judge(
        sent.endpoint,
        reported,
        tokens(Math.min(readable, sent.eventBlocks)),
        tokens(Math.min(readable, sent.modelled)),
      );
    const losses: readonly LossPart[] = isRefused
      ? possible === 0
        ? []
        : [{ loss: "refused", tokens: possible }]
      : lossParts({ ...sent.levels, possible, hit, chosenLater: tokens(sent.later) });
    this.rows.push({
      requestId: id,
      tenant,
      endpoint: sent?.endpoint ?? "",
      promptTokens,
      possible,
      hit,
      isModelled: reported === undefined,
      isByEvents: sent?.isByEvents ?? false,
      losses,
      expected: sent?.levels.believedChosen ?? 0,
      ...(sent?.elsewhere && { elsewhere: sent.elsewhere }),
    });
  }
}

/** It was sent, and no engine computed its prompt: no choice of another would have found it in a cache, or left it there. */
function isUncomputed({ sent, refused }: Open): boolean {
  return sent !== undefined && sent.later < 0 && !refused;
}

const NOT_SEEN = { against: "", lead: 0 } as const;

/** Which scorer's weighted lead of the chosen one over the other was the largest, or which filter removed the other. */
function against(
  { candidates, scorers, values, totals }: Breakdown,
  chosen: EndpointId,
  other: EndpointId,
): Pick<Elsewhere, "against" | "lead"> {
  const [c, o] = [chosen, other].map((id) => candidates.findIndex(({ endpoint }) => endpoint === id)) as [
    number,
    number,
  ];
  if (o < 0 || c < 0) return { against: "", lead: 0 };
  if (candidates[o]!.removedBy !== "") return { against: candidates[o]!.removedBy, lead: 0 };
  let [name, most] = ["", 0];
  scorers.forEach((scorer, s) => {
    const [mine, its] = [c, o].map((i) => Math.max(0, values[s * candidates.length + i]!)) as [number, number];
    const lead = scorer.weight * (mine - its);
    if (lead > most) [name, most] = [scorer.name, lead];
  });
  return { against: name, lead: totals[c]! - totals[o]! };
}
