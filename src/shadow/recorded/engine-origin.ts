import type { EngineSource, SourceRun } from "#engine/engine-source.ts";
import type { BetweenRuns, SeenRun, StepResiduals } from "#engine/step-drift.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { BETWEEN_RUNS_STATED } from "./between-runs.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";

/** A run by what distinguishes it from others. */
export function sourceRunOf({ run, startWallMicros, machine }: TraceHeader): SourceRun {
  return {
    run,
    ...(startWallMicros > 0 && { startedAt: new Date(startWallMicros / MICROS_PER_MILLI).toISOString() }),
    ...(machine?.digest !== undefined && { machine: machine.digest }),
    ...(machine?.engineVersion !== undefined && { engineVersion: machine.engineVersion }),
  };
}

/** What an engine's file leaves to chance in a trace, and the notes to print about it. */
export interface ResidualsHere {
  readonly residuals: StepResiduals | undefined;
  readonly notes: readonly string[];
}

/** What the trace shows of its own run: its speed, and what replaces the engine's residuals. */
interface SeenHere {
  readonly speed: SeenRun;
  readonly own: Partial<StepResiduals>;
}

/**
 * The engine's residuals as they hold for a trace: without what another run is off by in the very run that it was fitted
 * to, and with what is stated where a file does not hold it. Of any other run `seen` may state how fast the engine was there
 * and how its times wandered: of the noise of several, most is the noisiest one's. Where it does not, one of several that
 * were fitted has the speed that the fit found. Notes which it is, and where machine, engine or day are others than the file's.
 */
export function residualsFor(
  residuals: StepResiduals | undefined,
  source: EngineSource | undefined,
  header: TraceHeader,
  seen?: () => SeenHere | undefined,
): ResidualsHere {
  if (residuals === undefined) return { residuals, notes: [] };
  const here = sourceRunOf(header);
  const runs = source?.runs ?? [];
  if (runs.length === 1 && isSame(runs[0]!, here)) {
    const note = "intervals: the engine was fitted to this very run, so they leave out what another one is off by";
    return { residuals: { ...residuals, betweenRuns: undefined }, notes: [note] };
  }
  const betweenRuns = residuals.betweenRuns ?? BETWEEN_RUNS_STATED;
  const thisRun = betweenRuns.seen?.[runs.findIndex((run) => isSame(run, here))];
  const among = `intervals: one of the ${runs.length} runs that the engine was fitted to`;
  const apart = thisRun === undefined ? differences(runs, here) : [];
  const shown = seen?.();
  if (shown !== undefined) {
    const { speed, own } = shown;
    const which = thisRun === undefined ? "intervals: another run than the engine was fitted to" : among;
    const words = `${which}; by the trace's own answers steps were ${signed(speed.level)} as long there (${percent(speed.error)})`;
    const here = { ...atSpeed(residuals, { ...betweenRuns, noise: 0 }, speed), ...own };
    return { residuals: here, notes: [words, ...apart] };
  }
  if (thisRun !== undefined) {
    const words = `${among}; steps were ${signed(thisRun.level)} as long as in all`;
    return { residuals: atSpeed(residuals, betweenRuns, thisRun), notes: [words] };
  }
  const session = isSameSession(runs, here);
  const between = session ? withinSession(betweenRuns) : betweenRuns;
  const words = `intervals: another run than the engine was fitted to${session ? ", of the same hours" : ""}; ${betweenWords(between)}; ${NARROWER}`;
  return { residuals: { ...residuals, betweenRuns: between }, notes: [words, ...apart] };
}

function withinSession(all: BetweenRuns): BetweenRuns {
  const { level, session = level, delay, sessionDelay = delay } = all;
  return { ...all, level: Math.min(level, session), delay: Math.min(delay, sessionDelay) };
}

/** In a run whose speed is known, and with it its level and delay. */
function atSpeed(residuals: StepResiduals, betweenRuns: BetweenRuns, thisRun: SeenRun): StepResiduals {
  const left = { ...betweenRuns, level: 0, ...(thisRun.delay !== undefined && { delay: 0 }) };
  return { ...residuals, levelError: thisRun.error, betweenRuns: left, thisRun };
}

/** Runs that began within so long of one another are of one session: the machine's neighbours are likely the same. */
const SESSION_MILLIS = 2 * 3_600_000;

function isSameSession(runs: readonly SourceRun[], { startedAt, machine }: SourceRun): boolean {
  if (startedAt === undefined) return false;
  return runs.some(
    (run) =>
      run.startedAt !== undefined &&
      (run.machine ?? machine) === machine &&
      Math.abs(Date.parse(run.startedAt) - Date.parse(startedAt)) <= SESSION_MILLIS,
  );
}

const NARROWER = "calibrate this trace together with those for narrower ones";

/** As people read it. */
export function betweenWords({ level, delay, runs }: BetweenRuns): string {
  const from = runs < 2 ? "stated, not seen: calibrate several traces to see it" : `seen between ${runs} runs`;
  return `steps ${percent(level)}, the time outside the engine ${percent(delay)} from run to run (${from})`;
}

/** Runs that were imported have no name of their own: without their time they cannot be distinguished. */
function isSame(one: SourceRun, other: SourceRun): boolean {
  if (one.startedAt === undefined && one.run === UNNAMED) return false;
  return one.run === other.run && one.startedAt === other.startedAt;
}

const UNNAMED = "imported";

function differences(runs: readonly SourceRun[], here: SourceRun): string[] {
  const other = (key: "machine" | "engineVersion", what: string) => {
    const known = [...new Set(runs.flatMap((run) => run[key] ?? []))];
    const mine = here[key];
    if (known.length === 0 || mine === undefined || known.includes(mine)) return [];
    return [`the engine file is of another ${what}: ${known.join(", ")} there, ${mine} here`];
  };
  const days = [...new Set(runs.flatMap(({ startedAt }) => startedAt?.slice(0, DAY_CHARS) ?? []))];
  const day = here.startedAt?.slice(0, DAY_CHARS);
  const later =
    day === undefined || days.length === 0 || days.includes(day)
      ? []
      : [`the engine file is of another day: ${days.join(", ")}, the trace of ${day}`];
  return [...other("machine", "machine"), ...other("engineVersion", "engine version"), ...later];
}

/** Of an ISO time. */
const DAY_CHARS = "2026-01-31".length;

/** A logarithm of a factor. */
function signed(level: number): string {
  return `${Math.exp(level).toFixed(2)} times`;
}

function percent(share: number): string {
  return `+-${(100 * share).toFixed(0)} %`;
}
