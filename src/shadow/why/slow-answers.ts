import { divisionOf } from "#core/profile/profile-stages.ts";
import { nameHash, type Random, randomFor } from "#core/base/random.ts";
import type { Interval } from "#shadow/figure/interval.ts";
import { percentile } from "#core/base/quantile.ts";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { aheadOf, type WorkAhead } from "./ahead.ts";
import type { SlowEngines } from "./engine-speeds.ts";
import { type FigureAsked, figureOf } from "./figure-asked.ts";
import { type HotTenant, hotTenant } from "./hot-tenant.ts";
import type { Refittable } from "./refitted-engine.ts";
import { seenTransfers } from "./seen-transfers.ts";
import { coalitionsOf, exactMarginals, type Game, type Marginal, sampledMarginals, shapleyValues } from "./shapley.ts";
import { type Removable, CAUSES, hasFaults, type TrafficAsked, type WorldOutcome } from "./world.ts";
import { NONE, type Refit, Worlds } from "./worlds.ts";

export interface SlowQuestion {
  readonly setting: Setting;
  readonly inForce: Candidate;
  /** The default policy. */
  readonly otherwise: Candidate;
  /** In the workload's order; undefined for a workload that was never run. */
  readonly observed: readonly Observed[] | undefined;
  /** Cached tokens were lost since the gateway did not know of them: see knewTooLittle. */
  readonly isIndexWrong: boolean;
  readonly figure: FigureAsked;
  /** Places in the workload of the requests that are asked about; all where it is left out. */
  readonly requests?: readonly number[];
  /** Simulations of the whole traffic at most, and as much again to find slow engines. */
  readonly worldsMax: number;
  /** Simulations on drawn engines of each of them; none where engines have no residuals. */
  readonly replicas: number;
  readonly seed: number;
  /** What of the engine may be fitted anew to the traffic itself; nothing where it is left out. */
  readonly refittable?: Refittable;
}

/** What a row of the answer is: a cause that can be taken out, or what is left. */
export type TimePart = Removable | "retries" | "gateway" | "load" | "own" | "unexplained";

export interface SlowPart {
  readonly part: TimePart;
  readonly micros: number;
  /** 90 % over requests and drawn engines, and never without `micros`; undefined where neither can be drawn. */
  readonly interval: Interval | undefined;
}

export interface SlowAnswer {
  readonly figure: FigureAsked;
  /** Over how many requests. */
  readonly requests: number;
  /** Answers asked about whose first token nobody saw, since they came in one piece. */
  readonly inOnePiece: number;
  /** As it was seen, else as it is simulated: the sum of all parts. */
  readonly micros: number;
  readonly isObserved: boolean;
  /** Causes, the largest first, and then retries, gateway, load, own and unexplained. */
  readonly parts: readonly SlowPart[];
  readonly hotTenant: HotTenant | undefined;
  readonly slowEngines: SlowEngines["engines"];
  /** Where the engine's times were fitted anew to this traffic. */
  readonly refit?: Refit;
  /** Causes that change nothing where they alone are taken out, or that there are not. */
  readonly without: readonly Removable[];
  /** Where times go in the simulation of what happened. */
  readonly stages: Stages;
  readonly ahead: WorkAhead;
  /** Simulations that it took, and whether every order of causes was taken or some were drawn. */
  readonly worlds: number;
  readonly isExact: boolean;
}

/** Means over the requests asked about, of a percentile over those at and beyond it; they add up to `micros`. */
export interface Stages {
  readonly micros: number;
  readonly queueMicros: number;
  /** From admission to the first token, alone and with what others added. */
  readonly prefillAloneMicros: number;
  readonly prefillMoreMicros: number;
  readonly decodeAloneMicros: number;
  readonly decodeMoreMicros: number;
}

const RESAMPLES = 200;
/** Neighbours in time that wait for each other are drawn together. */
const BLOCKS = 40;

/**
 * Why answers are slow: the same traffic simulated again with causes taken out, alone and together, each part being its
 * cause's fair share (Shapley) of all that taking them out changes. A step before every simulation.
 */
export function* slowAnswers(question: SlowQuestion): Generator<void, SlowAnswer> {
  const { observed, figure, seed } = question;
  const setting = seenSetting(question);
  const tenant = hotTenant(setting.workload, observed, randomFor(seed, nameHash("tenants")));
  const worlds = new Worlds({ ...trafficOf(question, tenant), setting });
  let refit: Refit | undefined;
  if (observed !== undefined) {
    yield* worlds.findSlowEngines(observed, question.worldsMax);
    const { refittable } = question;
    if (refittable !== undefined) refit = yield* worlds.refit(observed, question.worldsMax, refittable);
  }
  const active = yield* activeCauses(worlds, question);
  const game: Game = { players: active.length, after: active.map((cause) => afterOf(cause, active)) };
  const { marginals, isExact } = ordersOf(game, question);
  const coalitions = coalitionsOf(game, marginals).map((set) => setOf(set, active));
  const replicas = worlds.traffic.setting.residuals === undefined ? 0 : question.replicas;
  for (let replica = 0; replica <= replicas; replica++) {
    for (const without of coalitions) yield* worlds.run(without, { replica });
    yield* worlds.run(new Set(active), { replica, alone: true });
  }
  const excluded = question.requests === undefined && active.includes("tenant") ? tenant?.tenant : undefined;
  const { asked, inOnePiece } = askedOf(question, worlds, excluded);
  const study: Study = { question, active, marginals, worlds, asked };
  const base = worlds.get(NONE);
  const tail = tailOf(base, study);
  return {
    ...figuresOf(study, replicas, randomFor(seed, nameHash("requests"))),
    figure,
    requests: asked.length,
    inOnePiece,
    isObserved: observed !== undefined,
    hotTenant: active.includes("tenant") ? tenant : undefined,
    slowEngines: worlds.slow?.engines ?? [],
    ...(refit && { refit }),
    without: CAUSES.filter((cause) => !active.includes(cause)),
    stages: choosersOf(base, worlds.get(new Set(active), { alone: true }), tail, figure),
    ahead: aheadOf(base, setting.workload, tail),
    worlds: worlds.count,
    isExact,
  };
}

/** Where prompts are computed elsewhere, blocks go as fast as was seen. */
function seenSetting({ setting, observed, inForce }: SlowQuestion): Setting {
  if (observed === undefined || divisionOf(inForce.spec) === undefined) return setting;
  const transfers = seenTransfers(observed, setting.workload, setting.engine);
  return transfers === undefined ? setting : { ...setting, transfers };
}

function trafficOf(
  { setting, inForce, otherwise, observed, requests }: SlowQuestion,
  tenant: HotTenant | undefined,
): TrafficAsked {
  return {
    setting,
    inForce,
    otherwise,
    sentTo: observed?.map(({ endpoint }) => endpoint),
    tenant: tenant?.tenant,
    keep: new Set(requests?.map((index) => setting.workload.at(index)!.session)),
    slow: undefined,
  };
}

/** Causes that there are, and that change anything where they alone are taken out. */
function* activeCauses(worlds: Worlds, { isIndexWrong }: SlowQuestion): Generator<void, Removable[]> {
  yield* worlds.run(NONE);
  const active: Removable[] = [];
  const there = CAUSES.filter((one) => (one === "index" ? isIndexWrong : mayMatter(one, worlds.traffic)));
  for (const cause of there) {
    const without = alone(cause, there);
    yield* worlds.run(without);
    if (cause === "policy" || differs(worlds.get(NONE), worlds.get(without))) active.push(cause);
  }
  return active;
}

/** All orders of the causes, or as many as there is room for. */
function ordersOf(
  game: Game,
  { worldsMax, seed }: SlowQuestion,
): Pick<Study, "marginals"> & { readonly isExact: boolean } {
  const marginals = exactMarginals(game);
  if (coalitionsOf(game, marginals).length <= worldsMax) return { marginals, isExact: true };
  return { marginals: sampledMarginals(game, worldsMax, randomFor(seed, nameHash("orders"))), isExact: false };
}

/**
 * Requests that were answered, really and in every simulation, and whose time was seen; not those of the tenant that is
 * taken out in some.
 */
function askedOf(
  { setting, observed, figure, requests }: SlowQuestion,
  worlds: Worlds,
  excluded: string | undefined,
): { readonly asked: Int32Array; readonly inOnePiece: number } {
  const rows = requests ?? Array.from({ length: setting.workload.length }, (_, i) => i);
  const all = worlds.all.map((one) => timeOf(one, figure));
  const answered = rows.filter((index) => {
    if (observed !== undefined && !observed[index]!.ok) return false;
    if (excluded !== undefined && setting.workload.at(index)!.tenant === excluded) return false;
    return all.every((times) => !Number.isNaN(times[index]!));
  });
  const seen = answered.filter((index) => observed === undefined || !Number.isNaN(seenOf(observed[index]!, figure)));
  return { asked: Int32Array.from(seen), inOnePiece: answered.length - seen.length };
}

function seenOf({ ttftMicros, e2eMicros }: Observed, { time }: FigureAsked): number {
  return time === "ttft" ? ttftMicros : e2eMicros;
}

function figuresOf(study: Study, replicas: number, random: Random): Pick<SlowAnswer, "micros" | "parts"> {
  const parts = partsOf(study, study.asked, 0);
  const drawn = drawnParts(study, replicas, random);
  const order = [...study.active].sort((a, b) => parts.get(b)! - parts.get(a)!);
  const shown: TimePart[] = [...order, "retries", "gateway", "load", "own", "unexplained"];
  return {
    micros: [...parts.values()].reduce((sum, one) => sum + one, 0),
    parts: shown
      .filter((part) => parts.has(part))
      .map((part) => ({ part, micros: parts.get(part)!, interval: intervalOf(drawn, part, parts.get(part)!) })),
  };
}

interface Study {
  readonly question: SlowQuestion;
  readonly active: readonly Removable[];
  readonly marginals: readonly Marginal[];
  readonly worlds: Worlds;
  readonly asked: Int32Array;
}

/** Whether there is such a cause at all. */
function mayMatter(cause: Exclude<Removable, "index">, traffic: TrafficAsked): boolean {
  switch (cause) {
    case "policy":
      return !isSamePolicy(traffic.inForce, traffic.otherwise);
    case "cache":
      return true;
    case "tenant":
      return traffic.tenant !== undefined;
    case "engines":
      return traffic.slow !== undefined;
    case "faults":
      return hasFaults(traffic.setting);
    case "transfer":
      return divisionOf(traffic.inForce.spec) !== undefined;
  }
}

/** By what they do, whatever they are called. */
function isSamePolicy(inForce: Candidate, otherwise: Candidate): boolean {
  return inForce.asRecorded === undefined && JSON.stringify(inForce.spec) === JSON.stringify(otherwise.spec);
}

/** Another policy is tried with an index that is right: what it would have done with one that is wrong nobody recorded. */
function alone(cause: Removable, there: readonly Removable[]): ReadonlySet<Removable> {
  return new Set(cause === "policy" && there.includes("index") ? ["index", cause] : [cause]);
}

/**
 * What goes wrong is taken out under the policy in force, and the policy after it: its part is what the other one would save
 * where nothing is wrong. Otherwise a policy that only makes up for a fault would have half of what the fault costs.
 */
function afterOf(cause: Removable, active: readonly Removable[]): number {
  if (cause !== "policy") return 0;
  return active.reduce((set, one, player) => (WRONG.has(one) ? set | (1 << player) : set), 0);
}

const WRONG: ReadonlySet<Removable> = new Set(["index", "tenant", "engines", "faults"]);

function setOf(set: number, active: readonly Removable[]): ReadonlySet<Removable> {
  return new Set(active.filter((_, player) => (set & (1 << player)) !== 0));
}

function differs(a: WorldOutcome, b: WorldOutcome): boolean {
  return a.e2eMicros.some((micros, i) => !Number.isNaN(b.e2eMicros[i]!) && micros !== b.e2eMicros[i]);
}

function timeOf(outcome: WorldOutcome, { time }: FigureAsked): Float64Array {
  return time === "ttft" ? outcome.ttftMicros : outcome.e2eMicros;
}

/** Every part over these requests; together they are what was seen, or simulated where nothing was. */
function partsOf(
  { question, active, marginals, worlds }: Study,
  rows: Int32Array,
  replica: number,
): Map<TimePart, number> {
  const { figure, observed } = question;
  const valueOf = (outcome: WorldOutcome): number => {
    const times = timeOf(outcome, figure);
    // Float64Array.from goes through an iterator, and this is done for every world of every draw.
    const own = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) own[i] = times[rows[i]!]!;
    return figureOf(own, figure.of);
  };
  const known = new Map<number, number>();
  const world = (set: number): number => {
    const value = known.get(set) ?? valueOf(worlds.get(setOf(set, active), { replica }));
    known.set(set, value);
    return value;
  };
  const values = shapleyValues(active.length, marginals, world);
  const all = world((1 << active.length) - 1);
  const idle = valueOf(worlds.get(new Set(active), { replica, alone: true }));
  const parts = new Map<TimePart, number>(active.map((cause, player) => [cause, -values[player]!]));
  parts.set("load", all - idle);
  parts.set("own", idle);
  if (observed === undefined) return parts;
  const seen = (of: (one: Observed) => number) => {
    const own = new Float64Array(rows.length);
    rows.forEach((index, i) => (own[i] = seenOf(observed[index]!, figure) + of(observed[index]!)));
    return figureOf(own, figure.of);
  };
  // Where who is let in was recorded, who waits for that is simulated.
  const waits = ({ queuedMicros = 0 }: Observed) => (question.setting.admission === undefined ? queuedMicros : 0);
  const retried = ({ retriedMicros, queuedMicros = 0 }: Observed) => retriedMicros - queuedMicros;
  const whole = seen(({ heldMicros = 0 }) => heldMicros);
  const sent = seen((one) => -waits(one));
  const atLast = seen((one) => -waits(one) - retried(one));
  if (sent !== atLast) parts.set("retries", sent - atLast);
  if (whole !== sent) parts.set("gateway", whole - sent);
  parts.set("unexplained", atLast - world(0));
  return parts;
}

/** The parts over requests drawn by blocks of neighbours, the same ones everywhere, and over drawn engines. */
function drawnParts(study: Study, replicas: number, random: Random): readonly Map<TimePart, number>[] {
  const { asked, worlds } = study;
  if (asked.length < 2 * BLOCKS)
    return replicas < 2 ? [] : Array.from({ length: replicas }, (_, r) => partsOf(study, asked, r + 1));
  const { arrivalMicros } = worlds.get(NONE);
  const inTurn = asked.toSorted((a, b) => arrivalMicros[a]! - arrivalMicros[b]!);
  const blocks = Array.from({ length: BLOCKS }, (_, block) =>
    inTurn.subarray(Math.floor((block * inTurn.length) / BLOCKS), Math.floor(((block + 1) * inTurn.length) / BLOCKS)),
  );
  return Array.from({ length: RESAMPLES }, (_, draw) => {
    const drawn = blocks.map(() => blocks[random.below(BLOCKS)]!);
    const rows = new Int32Array(drawn.reduce((sum, one) => sum + one.length, 0));
    let at = 0;
    for (const one of drawn) {
      rows.set(one, at);
      at += one.length;
    }
    return partsOf(study, rows, replicas === 0 ? 0 : 1 + (draw % replicas));
  });
}

/**
 * Where 90 % of the drawn parts lie, and out to the part itself where that is beyond. The part is of the run without noise, as
 * all figures that add up are, and what noise does to a queue leans to one side: it can bring a cause that costs something
 * without it to nothing in every draw. Then the two differ by what noise makes of the part, which is not known of the traffic
 * that is asked about, so that the interval has both.
 */
function intervalOf(drawn: readonly Map<TimePart, number>[], part: TimePart, micros: number): Interval | undefined {
  const values = Float64Array.from(drawn, (one) => one.get(part) ?? 0).sort();
  if (values.length === 0) return undefined;
  return { low: Math.min(micros, percentile(values, 5)), high: Math.max(micros, percentile(values, 95)) };
}

/** Of a percentile those at and beyond it, else all. */
function tailOf(base: WorldOutcome, { question, asked }: Study): Int32Array {
  const { figure } = question;
  if (figure.of === "mean" || asked.length === 0) return asked;
  const times = timeOf(base, figure);
  const least = percentile(Float64Array.from(asked, (index) => times[index]!).sort(), figure.of);
  return asked.filter((index) => times[index]! >= least);
}

function choosersOf(base: WorldOutcome, idle: WorldOutcome, rows: Int32Array, figure: FigureAsked): Stages {
  const mean = (value: (index: number) => number) => figureOf(Float64Array.from(rows, value), "mean");
  const isWhole = figure.time === "e2e";
  const prefill = (one: WorldOutcome, index: number) => one.ttftMicros[index]! - one.queueMicros[index]!;
  const decode = (one: WorldOutcome, index: number) => one.e2eMicros[index]! - one.ttftMicros[index]!;
  const [prefillAlone, decodeAlone] = [mean((i) => prefill(idle, i)), isWhole ? mean((i) => decode(idle, i)) : 0];
  return {
    micros: mean((index) => timeOf(base, figure)[index]!),
    queueMicros: mean((index) => base.queueMicros[index]!),
    prefillAloneMicros: prefillAlone,
    prefillMoreMicros: mean((index) => prefill(base, index)) - prefillAlone,
    decodeAloneMicros: decodeAlone,
    decodeMoreMicros: isWhole ? mean((index) => decode(base, index)) - decodeAlone : 0,
  };
}
