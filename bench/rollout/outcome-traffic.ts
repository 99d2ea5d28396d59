import { mix32, nameHash, type Random, randomFor } from "#core/base/random.ts";

/** One request as it comes, before any arm has had a say: seconds and tokens. */
export interface DrawnRequest {
  readonly at: number;
  readonly session: string;
  readonly tenant: string;
  readonly turn: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** What its work is multiplied by for reasons of its own. */
  readonly luck: number;
  /** Draws in [0, 1) that name its faults. */
  readonly fault: number;
  readonly tail: number;
}

const TENANTS = 30;
const TURNS_MAX = 300;
const PROMPT_TOKENS_MAX = 100_000;
/** Seconds of work for a prompt's token, and for a request at all. */
const PREFILL_SECONDS = 0.00005;
const REQUEST_SECONDS = 0.02;

interface Tenant {
  readonly weight: number;
  readonly prompt: number;
  readonly output: number;
  readonly think: number;
}

/**
 * Traffic that does judges no favours: sessions of 1 to 300 turns (Pareto), 30 tenants of which the largest has a fifth,
 * each with prompts of its own; load that drifts, is autocorrelated over minutes and bursts; prompts of a Pareto tail. In
 * order of arrival.
 */
export function drawnTraffic(seed: number, seconds: number, perSecond: number): DrawnRequest[] {
  const random = randomFor(seed, nameHash("outcome traffic"));
  const tenants = Array.from({ length: TENANTS }, (_, i): Tenant => ({
    weight: 1 / (i + 1),
    prompt: Math.exp(0.7 * normal(random)),
    output: Math.exp(0.4 * normal(random)),
    think: 4 + 16 * random.next(),
  }));
  const weights = tenants.reduce((sum, { weight }) => sum + weight, 0);
  const load = loadOf(random, seconds);
  const drawn: DrawnRequest[] = [];
  // Turns have a mean of about 6 with this shape; sessions come before the beginning too.
  const warmup = 600;
  const sessionsPerSecond = perSecond / 6;
  for (let at = -warmup, number = 0; at < seconds; number++) {
    at += exponential(random) / (sessionsPerSecond * load(at));
    const tenant = tenantAt(tenants, random.next() * weights);
    const own = tenants[tenant]!;
    const turns = Math.min(TURNS_MAX, Math.floor(pareto(random, 1, 1.2)));
    const size = Math.exp(0.5 * normal(random));
    for (let turn = 0, now = at; turn < turns && now < seconds; turn++) {
      const prompt = own.prompt * size * pareto(random, 150, 1.4) + 250 * Math.min(turn, 40);
      const request: DrawnRequest = {
        at: now,
        session: `s${number}`,
        tenant: `t${tenant}`,
        turn,
        promptTokens: Math.round(Math.min(PROMPT_TOKENS_MAX, prompt)),
        outputTokens: Math.max(2, Math.round(own.output * 120 * Math.exp(0.8 * normal(random)))),
        luck: Math.exp(0.3 * normal(random)),
        fault: random.next(),
        tail: random.next(),
      };
      if (now >= 0) drawn.push(request);
      now += 1 + own.think * exponential(random);
    }
  }
  return drawn.sort((one, other) => one.at - other.at);
}

/** Of a queue that all requests of a pool share, as fluid: what waits is worked off at an even rate. */
export class FluidQueue {
  readonly #speed: number;
  #backlog = 0;
  #at = 0;

  /** `speed`: seconds of work that are done in a second. */
  constructor(speed: number) {
    this.#speed = speed;
  }

  /** Seconds until the first token, and seconds a token. */
  take({ at, promptTokens, luck }: DrawnRequest): { readonly ttft: number; readonly tpot: number } {
    this.#backlog = Math.max(0, this.#backlog - this.#speed * (at - this.#at));
    this.#at = at;
    const work = (REQUEST_SECONDS + PREFILL_SECONDS * promptTokens) * luck;
    const ttft = this.#backlog / this.#speed + work;
    const tpot = 0.02 * luck * (1 + Math.min(4, this.#backlog / this.#speed));
    this.#backlog += work;
    return { ttft, tpot };
  }
}

/** What the load is multiplied by at a time: drift, an autoregressive part of two minutes, bursts of half a minute. */
function loadOf(random: Random, seconds: number): (at: number) => number {
  const step = 5;
  const [phase, slope] = [random.next(), random.next() - 0.5];
  const values: number[] = [];
  let own = 0;
  let burstUntil = -Infinity;
  let burst = 1;
  for (let at = -600; at <= seconds + step; at += step) {
    own += -own * (step / 120) + 0.35 * Math.sqrt((2 * step) / 120) * normal(random);
    if (at > burstUntil && random.next() < step / 300) {
      burstUntil = at + 10 + 30 * random.next();
      burst = 2 + 2 * random.next();
    }
    const drift = 1 + 0.3 * Math.sin(2 * Math.PI * (at / 3600 + phase)) + (0.4 * slope * at) / seconds;
    values.push(Math.max(0.1, drift) * Math.exp(own) * (at <= burstUntil ? burst : 1));
  }
  return (at) => values[Math.min(values.length - 1, Math.max(0, Math.floor((at + 600) / step)))]!;
}

/** An even draw in [0, 1) that belongs to a name. */
export function drawOf(name: string, seed: number): number {
  return mix32(nameHash(name) ^ mix32(seed)) / 0x1_0000_0000;
}

function tenantAt(tenants: readonly Tenant[], place: number): number {
  let left = place;
  const found = tenants.findIndex(({ weight }) => (left -= weight) < 0);
  return found < 0 ? 0 : found;
}

function exponential(random: Random): number {
  return -Math.log(1 - random.next());
}

function pareto(random: Random, least: number, shape: number): number {
  return least / (1 - random.next()) ** (1 / shape);
}

function normal(random: Random): number {
  return Math.sqrt(2 * exponential(random)) * Math.cos(2 * Math.PI * random.next());
}
