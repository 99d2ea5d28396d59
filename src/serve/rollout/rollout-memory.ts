import { isUnderWay } from "#core/rollout/rollout-book.ts";
import { movedJudge } from "#core/rollout/judge/moved-judge.ts";
import { type RolloutState, type RolloutStep, windowAt } from "#core/rollout/rollout-state.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/units.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { IntervalsView, StepView } from "#live/rollout/rollout-view.ts";
import type { RouterTap } from "#live/router-tap.ts";
import type { StateFolder } from "../state/state-folder.ts";
import type { RolloutStory } from "./rollout-view-of.ts";
import { intervalsAt } from "./rollout-view-of.ts";
import {
  MEASURE_VERSION,
  movedState,
  rolloutsText,
  type SavedMeasure,
  type SavedRollout,
  savedRollouts,
} from "./saved-rollout.ts";

const STEPS_MAX = 256;
const INTERVALS_MAX = 240;
const ENDED_MAX = 256;
/** What judges have seen is written at most so often, and takes at most this share of the event loop's time. */
const MEASURE_MILLIS = 2_000;
const MEASURE_SHARE = 0.01;

interface Story {
  readonly steps: StepView[];
  intervals: IntervalsView[];
  startsAt: Micros;
  by: string;
  /** Of the last interval. */
  window: number;
}

export interface RolloutMemoryOptions {
  /** Undefined where nothing is kept. */
  readonly folder: StateFolder | undefined;
  /** Wall time of the zero of the router's clock, in microseconds since 1970. */
  readonly wallStartMicros: Micros;
  readonly report: (event: FaultEvent) => void;
}

/** What is known of rollouts beside the router: their history, and all of it across restarts. */
export class RolloutMemory {
  readonly #options: RolloutMemoryOptions;
  readonly #stories = new Map<string, Story>();
  /** Names of rollouts that were let go. */
  readonly #ended = new Set<string>();
  /** Rollouts that have ended with all their requests: nothing more is measured of them. */
  readonly #final = new Set<string>();
  #measuredAtMillis = 0;
  #measureTookMillis = 0;
  #failed = "";

  constructor(options: RolloutMemoryOptions) {
    this.#options = options;
  }

  readonly wallOf = (at: Micros): string =>
    new Date(Math.round((this.#options.wallStartMicros + at) / MICROS_PER_MILLI)).toISOString();

  story(rollout: string): RolloutStory {
    return this.#storyOf(rollout);
  }

  startsAt(rollout: string): Micros {
    return this.#storyOf(rollout).startsAt;
  }

  hasEnded(rollout: string): boolean {
    return this.#ended.has(rollout);
  }

  /** Somebody asked for it; its first window begins then. */
  plan(rollout: string, startsAt: Micros, by: string): void {
    Object.assign(this.#storyOf(rollout), { startsAt, by });
  }

  starterOf(rollout: string): string {
    return this.#storyOf(rollout).by;
  }

  stepped({ at, rollout, step, arm, reason, by }: RolloutStep): void {
    const { steps } = this.#storyOf(rollout);
    steps.push({ at: this.wallOf(at), step, arm, reason, by });
    if (steps.length > STEPS_MAX) steps.shift();
  }

  /** After a look: a point of the chart for each window, and the current one's. */
  measured(rollouts: Rollouts, at: Micros): void {
    for (const state of rollouts.book) {
      if (state.phase !== "running") continue;
      const story = this.#storyOf(state.plan.name);
      const window = windowAt(state, at);
      if (window === story.window) story.intervals.pop();
      story.window = window;
      story.intervals.push(intervalsAt(rollouts.watch(state.plan.name)!, at, this.wallOf));
      // Every second one of the older half goes, so that the beginning stays in sight.
      if (story.intervals.length > INTERVALS_MAX) {
        story.intervals = story.intervals.filter((_, i) => i >= INTERVALS_MAX / 2 || i % 2 === 0);
      }
    }
  }

  forget(rollout: string): void {
    this.#stories.delete(rollout);
    this.#final.delete(rollout);
    this.#ended.add(rollout);
    if (this.#ended.size > ENDED_MAX) this.#ended.delete(this.#ended.values().next().value!);
    this.#options.folder?.forgetJudge(rollout);
  }

  /** Gives the router what was kept. What cannot be read is reported and left where it is. */
  restore(tap: RouterTap, at: Micros): void {
    const { router } = tap;
    const { folder, wallStartMicros, report } = this.#options;
    if (folder === undefined) return;
    try {
      const { rollouts, ended } = savedRollouts(folder.readRollouts());
      for (const name of ended) this.#ended.add(name);
      for (const saved of rollouts) {
        const { plan } = saved.state;
        const measure = this.#readMeasure(plan.name);
        const input = {
          kind: "rollout-restored",
          at,
          state: movedState(saved.state, -wallStartMicros),
          rules: saved.rules,
          profiles: saved.profiles,
          ...(measure !== undefined && {
            judge: movedJudge(measure.judge, measure.wallStartMicros - wallStartMicros),
            agreements: measure.agreements,
          }),
        } as const;
        const refusal = router.rollouts.refusal(input);
        if (refusal !== undefined) {
          report({ kind: "state-failed", detail: `${folder.path}: ${refusal}`, done: "that rollout is left out" });
          continue;
        }
        tap.accept(input);
        const startsAt = saved.startsAt === undefined ? 0 : saved.startsAt - wallStartMicros;
        this.#stories.set(plan.name, {
          steps: [...saved.steps],
          intervals: [...(measure?.intervals ?? [])],
          startsAt,
          by: saved.by ?? "",
          window: -1,
        });
      }
      if (router.rollouts.readsSessions)
        tap.accept({ kind: "sessions-restored", at, keys: folder.conversations.read() });
    } catch (error) {
      report({ kind: "state-failed", detail: `${folder.path}: ${messageOf(error)}`, done: "no rollout is under way" });
    }
  }

  /** All that is to be known of them elsewhere, but for what was measured. */
  saved(rollouts: Rollouts): SavedRollout[] {
    const { wallStartMicros } = this.#options;
    return rollouts.book.map((state): SavedRollout => {
      const { rules, profiles } = rollouts.spec(state.plan.name)!;
      const { steps, startsAt, by } = this.#storyOf(state.plan.name);
      const planned = state.phase === "planned" ? { startsAt: startsAt + wallStartMicros, by } : {};
      return { state: movedState(state, wallStartMicros), rules, profiles, steps, ...planned };
    });
  }

  /** Another replica made the latest step of it. */
  adopt({ state, steps, startsAt, by = "" }: SavedRollout): RolloutState {
    const { wallStartMicros } = this.#options;
    const story = this.#storyOf(state.plan.name);
    story.steps.splice(0, Infinity, ...steps);
    Object.assign(story, { startsAt: (startsAt ?? 0) - wallStartMicros, by });
    return movedState(state, -wallStartMicros);
  }

  /** Resolves when plans and steps are on the disk; never rejects. */
  async save(rollouts: Rollouts): Promise<void> {
    const { folder } = this.#options;
    if (folder === undefined) return;
    await this.#written(folder.rollouts.write(rolloutsText(this.saved(rollouts), [...this.#ended])));
  }

  /** Now and then, what judges of rollouts under way have seen. */
  async saveLater(rollouts: Rollouts): Promise<void> {
    const now = performance.now();
    if (now - this.#measuredAtMillis < Math.max(MEASURE_MILLIS, this.#measureTookMillis / MEASURE_SHARE)) return;
    this.#measuredAtMillis = now;
    const written = this.#writeMeasures(rollouts);
    this.#measureTookMillis = performance.now() - now;
    await written;
  }

  async end(rollouts: Rollouts): Promise<void> {
    await this.save(rollouts);
    await this.#writeMeasures(rollouts);
  }

  async #writeMeasures(rollouts: Rollouts): Promise<void> {
    const { folder, wallStartMicros } = this.#options;
    if (folder === undefined) return;
    const writes = rollouts.book.flatMap(({ plan: { name }, phase }) => {
      const watch = rollouts.watch(name);
      if (watch === undefined || phase === "planned" || this.#final.has(name)) return [];
      if (!isUnderWay({ phase }) && watch.inFlight === 0) this.#final.add(name);
      const { intervals } = this.#storyOf(name);
      const measure: SavedMeasure = {
        version: MEASURE_VERSION,
        judge: watch.judge.saved(),
        agreements: watch.agreements,
        intervals,
        wallStartMicros,
      };
      return [folder.judge(name).write(JSON.stringify(measure))];
    });
    await this.#written(Promise.all(writes));
  }

  #readMeasure(rollout: string): SavedMeasure | undefined {
    const { folder, report } = this.#options;
    try {
      const measure = folder?.readJudge(rollout) as Partial<SavedMeasure> | undefined;
      if (measure === undefined) return undefined;
      const { version } = measure;
      if (version !== MEASURE_VERSION) throw new Error(`version: expected ${MEASURE_VERSION}, got ${version}`);
      return measure as SavedMeasure;
    } catch (error) {
      const done = "the rollout goes on, and its comparison begins anew";
      report({ kind: "state-failed", detail: `what was measured of ${rollout}: ${messageOf(error)}`, done });
      return undefined;
    }
  }

  async #written(writing: Promise<unknown>): Promise<void> {
    try {
      await writing;
      this.#failed = "";
    } catch (error) {
      const detail = `${this.#options.folder?.path ?? ""}: ${messageOf(error)}`;
      if (detail !== this.#failed) {
        this.#options.report({
          kind: "state-failed",
          detail,
          done: "rollouts go on; a restart would not know of this",
        });
      }
      this.#failed = detail;
    }
  }

  #storyOf(rollout: string): Story {
    let story = this.#stories.get(rollout);
    if (story === undefined) {
      story = { steps: [], intervals: [], startsAt: 0, by: "", window: -1 };
      this.#stories.set(rollout, story);
    }
    return story;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
