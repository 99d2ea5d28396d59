import { type Random, nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "../workload-request.ts";
import { gapDraw, type GapProcess } from "./arrival-gap.ts";
import { namespacedBlockId } from "./block-id.ts";
import type { BlisArrival, BlisClient, BlisSpec } from "./blis-spec-schema.ts";
import { blisLength } from "./blis-length.ts";
import type { ImportReport } from "./import-report.ts";
import { RateShape } from "../transform/rate-shape.ts";

const BLOCK_TOKENS = 16;

/** One client's stream of conversations, and where it stands. */
interface Stream {
  readonly client: BlisClient;
  readonly number: number;
  readonly random: Random;
  readonly nextAt: () => number;
  at: number;
  /** Closed-loop users that have not begun. */
  usersLeft: number;
}

/**
 * Requests of a BLIS specification: each client has its own arrivals and lengths, given in order of arrival. The random
 * draws are ours, so a run is like one of BLIS's and not equal to it.
 */
export function* blisRequests(spec: BlisSpec, optionSeed: number, report: ImportReport): Generator<WorkloadRequest> {
  const seed = spec.seed ?? optionSeed;
  const shares = spec.clients.reduce((sum, client) => sum + client.rate_fraction, 0);
  const streams = spec.clients.map((client, number) => stream(client, number, seed, spec, shares));
  const groups = [...new Set(spec.clients.map((client) => client.prefix_group))];
  const horizon = spec.horizon === 0 ? Infinity : spec.horizon;
  const requestsMax = spec.num_requests === 0 ? Infinity : spec.num_requests;
  let conversations = 0;
  for (;;) {
    const [first, ...others] = streams;
    if (first === undefined) return;
    const next = others.reduce((best, one) => (one.at < best.at ? one : best), first);
    if (next.at >= horizon || report.accepted >= requestsMax) return;
    const room = requestsMax - report.accepted;
    const users = next.client.concurrency > 0;
    const rounds = users
      ? Math.ceil(room / Math.max(1, next.usersLeft))
      : (next.client.reasoning?.multi_turn?.max_rounds ?? 1);
    yield* conversation(next, Math.min(rounds, room), conversations, groups, report);
    conversations++;
    next.usersLeft--;
    if (users) next.at = next.usersLeft > 0 ? next.at : Infinity;
    else next.at = next.client.reasoning?.multi_turn?.single_session === true ? Infinity : next.nextAt();
  }
}

function stream(client: BlisClient, number: number, seed: number, spec: BlisSpec, shares: number): Stream {
  const random = randomFor(seed, nameHash(`blis-client/${number}`));
  const usersLeft = client.concurrency;
  if (usersLeft > 0) return { client, number, random, nextAt: () => Infinity, at: 0, usersLeft };
  const rate = (spec.aggregate_rate * client.rate_fraction) / shares;
  const nextAt = arrivals(client, rate, randomFor(seed, nameHash(`blis-arrivals/${number}`)));
  return { client, number, random, nextAt, at: nextAt(), usersLeft };
}

/** Absolute rates of windows stand in for the client's share where it has them. */
function arrivals(client: BlisClient, rate: number, random: Random): () => number {
  const windows = (client.lifecycle?.windows ?? []).map(({ start_us, end_us, trace_rate }) => ({
    startSeconds: start_us / MICROS_PER_SECOND,
    endSeconds: end_us / MICROS_PER_SECOND,
    factor: trace_rate ?? rate,
  }));
  const everywhere = [{ startSeconds: 0, endSeconds: Number.MAX_SAFE_INTEGER / MICROS_PER_SECOND, factor: rate }];
  const shape = new RateShape(windows.length > 0 ? windows : everywhere, undefined, undefined);
  const gap = gapDraw(processOf(client.arrival), random);
  let at = 0;
  return () => (at = shape.after(at, gap() * MICROS_PER_SECOND));
}

function processOf({ process, cv, shape }: BlisArrival): GapProcess {
  switch (process) {
    case "poisson":
    case "constant":
      return { process };
    case "gamma":
      return { process, cv: cv ?? (shape === undefined ? 1 : 1 / Math.sqrt(shape)) };
    case "weibull":
      return { process, shape: shape ?? 1 };
  }
}

function* conversation(
  { client, at, random, usersLeft }: Stream,
  rounds: number,
  number: number,
  groups: readonly string[],
  report: ImportReport,
): Generator<WorkloadRequest> {
  const turns = client.reasoning?.multi_turn;
  const accumulates = turns?.context_growth === "accumulate";
  const think = client.concurrency > 0 ? client.think_time_us : (turns?.think_time_us ?? 0);
  const shared = client.prefix_group === "" ? 0 : client.prefix_length;
  const closed = rounds > 1 && client.closed_loop !== false;
  const arrivalMicros: Micros = Math.round(at);
  let context = shared;
  for (let turn = 0; turn < rounds; turn++) {
    const promptTokens = context + blisLength(client.input_distribution, random);
    const outputTokens = blisLength(client.output_distribution, random);
    yield {
      ...LENGTHS_ONLY,
      index: report.accept(),
      arrivalMicros: closed ? arrivalMicros : arrivalMicros + Math.round(turn * think),
      session: closed ? `${client.id}-${number}${usersLeft > 0 ? `-${usersLeft}` : ""}` : "",
      turn: closed ? turn : 0,
      thinkMicros: closed && turn > 0 ? think : undefined,
      promptTokens,
      outputTokens,
      blockIds: blockIds(promptTokens, shared, groups.indexOf(client.prefix_group), number, accumulates),
      blockTokens: BLOCK_TOKENS,
      tenant: client.tenant_id,
      sloClass: client.slo_class,
      model: client.model,
      timeoutMicros: client.timeout === 0 ? undefined : client.timeout,
    };
    report.records++;
    if (accumulates) context = promptTokens + outputTokens;
  }
}

/** The group's blocks, then the conversation's where it accumulates, else this request's own. */
function blockIds(
  tokens: number,
  shared: number,
  group: number,
  conversation: number,
  accumulates: boolean,
): Float64Array {
  const sharedBlocks = Math.floor(shared / BLOCK_TOKENS);
  const ids = new Float64Array(accumulates ? Math.ceil(tokens / BLOCK_TOKENS) : sharedBlocks);
  for (let block = 0; block < ids.length; block++) {
    ids[block] =
      block < sharedBlocks ? namespacedBlockId(group, block) : namespacedBlockId(GROUPS_MAX + conversation, block);
  }
  return ids;
}

/** Namespaces below are those of prefix groups. */
const GROUPS_MAX = 100_001;
