import type { SavedJudge } from "#core/rollout/judge/judge.ts";
import { isRolloutUnderWay } from "#core/rollout/rollout-book.ts";
import type { RolloutWatch } from "#core/rollout-watch.ts";
import type { Rollouts } from "#core/rollouts.ts";
import type { IntervalsView } from "#live/admin/rollout-view.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { Micros } from "#core/base/units.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { replayedMeasure, versionText } from "./replayed-measure.ts";
import { MEASURE_VERSION, type SavedMeasure, type SavedRollout } from "./saved-rollout.ts";

/** What judges have seen is written whole at most so often, and takes at most this share of the event loop's time. */
const WHOLE_MILLIS = 10_000;
const WHOLE_SHARE = 0.01;

/** What was measured of a rollout before a restart, on the clock of this process. */
export interface RestoredMeasure {
  readonly judge: SavedJudge | undefined;
  readonly agreements: SavedMeasure["agreements"];
  readonly intervals: readonly IntervalsView[];
}

export interface RolloutMeasuresOptions {
  /** Undefined where nothing is kept. */
  readonly folder: StateFolder | undefined;
  /** Wall time of the zero of the router's clock, in microseconds since 1970. */
  readonly wallStartMicros: Micros;
  readonly report: (event: FaultEvent) => void;
  /** Points of a rollout's chart. */
  readonly intervalsOf: (rollout: string) => readonly IntervalsView[];
}

/**
 * What judges have seen, across restarts: whole now and then, and every entry since. Writing it whole may take long; what
 * a kill loses is what came in the last quarter of a second all the same.
 */
export class RolloutMeasures {
  readonly #options: RolloutMeasuresOptions;
  /** Rollouts that have ended with all their requests: nothing more is measured of them. */
  readonly #final = new Set<string>();
  #wholeAtMillis = -Infinity;
  #wholeTookMillis = 0;

  constructor(options: RolloutMeasuresOptions) {
    this.#options = options;
  }

  /** What cannot be read is reported and left out. */
  read(saved: SavedRollout): RestoredMeasure | undefined {
    const { folder, report, wallStartMicros } = this.#options;
    const { name } = saved.state.plan;
    try {
      const whole = folder?.readJudge(name) as SavedMeasure | undefined;
      if (whole !== undefined && whole.version !== MEASURE_VERSION) throw new Error(versionText(whole.version));
      const lines = folder?.judgeJournals(name, whole?.journal ?? 0) ?? [];
      const judge = replayedMeasure(saved, whole, lines, wallStartMicros);
      return { judge, agreements: whole?.agreements ?? [], intervals: whole?.intervals ?? [] };
    } catch (error) {
      const detail = `what was measured of ${name}: ${error instanceof Error ? error.message : String(error)}`;
      const done = "the rollout goes on, and its comparison begins anew";
      report({ kind: "state-failed", detail, done });
      return undefined;
    }
  }

  /**
   * Keeps the entries of rollouts that are new, and all of them whole where it is time for it. Rejects as the disk
   * does.
   */
  async keep(rollouts: Rollouts): Promise<void> {
    if (this.#options.folder === undefined) return;
    const isNew = this.#kept(rollouts).filter(([, watch]) => watch.noted === undefined).length > 0;
    const now = performance.now();
    const pause = Math.max(WHOLE_MILLIS, this.#wholeTookMillis / WHOLE_SHARE);
    if (!isNew && now - this.#wholeAtMillis < pause) return;
    this.#wholeAtMillis = now;
    const written = this.writeWhole(rollouts);
    this.#wholeTookMillis = performance.now() - now;
    await written;
  }

  async writeWhole(rollouts: Rollouts): Promise<void> {
    await Promise.all(this.#kept(rollouts).map(([name, watch]) => this.#write(name, watch)));
  }

  forget(rollout: string): void {
    this.#final.delete(rollout);
    this.#options.folder?.forgetJudge(rollout);
  }

  #kept(rollouts: Rollouts): [string, RolloutWatch][] {
    return rollouts.book.flatMap(({ plan: { name }, phase }): [string, RolloutWatch][] => {
      const watch = rollouts.watch(name);
      return watch === undefined || phase === "planned" || this.#final.has(name) ? [] : [[name, watch]];
    });
  }

  #write(name: string, watch: RolloutWatch): Promise<void> {
    const { folder, wallStartMicros, report } = this.#options;
    const journal = folder!.judge(name, {
      opening: JSON.stringify({ version: MEASURE_VERSION, wallStartMicros }),
      failed: (detail) => {
        const done = "a kill would lose what was measured since it was last written whole";
        report({ kind: "state-failed", detail: `what was measured of ${name}: ${detail}`, done });
      },
    });
    const isFinal = !isRolloutUnderWay(watch.state) && watch.inFlight === 0;
    if (isFinal) this.#final.add(name);
    const written = journal.replace((number) => {
      const measure: SavedMeasure = {
        version: MEASURE_VERSION,
        journal: number,
        judge: watch.judge.saved(),
        agreements: watch.agreements,
        intervals: this.#options.intervalsOf(name),
        wallStartMicros,
      };
      return JSON.stringify(measure);
    });
    watch.noted = isFinal ? undefined : (entry) => journal.add(JSON.stringify(entry));
    return written;
  }
}
