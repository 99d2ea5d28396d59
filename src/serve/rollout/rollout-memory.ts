import { type RolloutState, type RolloutStep, windowAt } from "#core/rollout/rollout-state.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { IntervalsView, StepView } from "#live/admin/rollout-view.ts";
import type { Intake } from "#live/base/intake.ts";
import type { RolloutStory } from "./rollout-view-of.ts";
import { intervalsAt } from "./rollout-view-of.ts";
import { ORDER_ANSWER_MILLIS, unkeptOf } from "../state/unkept.ts";
import { RolloutMeasures, type RolloutMeasuresOptions } from "./rollout-measures.ts";
import { movedState, rolloutsText, type SavedRollout, savedRollouts } from "./saved-rollout.ts";

const STEPS_MAX = 256;
const INTERVALS_MAX = 240;
const ENDED_MAX = 256;

interface Story {
  readonly steps: StepView[];
  intervals: IntervalsView[];
  startsAt: Micros;
  by: string;
  /** Its promotion stands no longer. */
  overtaken: boolean;
  /** Of the last interval. */
  window: number;
}

export type RolloutMemoryOptions = Omit<RolloutMeasuresOptions, "intervalsOf">;

/** What is known of rollouts beside the router: their history, and all of it across restarts. */
export class RolloutMemory {
  readonly #options: RolloutMemoryOptions;
  readonly #stories = new Map<string, Story>();
  /** Names of rollouts that were let go. */
  readonly #ended = new Set<string>();
  readonly #measures: RolloutMeasures;
  #failed = "";

  constructor(options: RolloutMemoryOptions) {
    this.#options = options;
    this.#measures = new RolloutMeasures({ ...options, intervalsOf: (rollout) => this.#storyOf(rollout).intervals });
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

  /** The policy was changed since it was promoted. */
  overtake(rollout: string): void {
    this.#storyOf(rollout).overtaken = true;
  }

  isOvertaken(rollout: string): boolean {
    return this.#storyOf(rollout).overtaken;
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
    this.#ended.add(rollout);
    if (this.#ended.size > ENDED_MAX) this.#ended.delete(this.#ended.values().next().value!);
    this.#measures.forget(rollout);
  }

  /** Gives the router what was kept. What cannot be read is reported and left where it is. */
  restore(intake: Intake, at: Micros): void {
    const { router } = intake;
    const { folder, wallStartMicros, report } = this.#options;
    if (folder === undefined) return;
    try {
      const { rollouts, ended } = savedRollouts(folder.readRollouts());
      for (const name of ended) this.#ended.add(name);
      for (const saved of rollouts) {
        const { plan } = saved.state;
        const measure = this.#measures.read(saved);
        const input = {
          kind: "rollout-restored",
          at,
          state: this.moved(saved.state),
          rules: saved.rules,
          profiles: saved.profiles,
          ...(measure?.judge !== undefined && { judge: measure.judge, agreements: measure.agreements }),
        } as const;
        const refusal = router.rollouts.refusal(input);
        if (refusal !== undefined) {
          report({ kind: "state-failed", detail: `${folder.path}: ${refusal}`, done: "that rollout is left out" });
          continue;
        }
        intake.accept(input);
        const startsAt = saved.startsAt === undefined ? 0 : saved.startsAt - wallStartMicros;
        this.#stories.set(plan.name, {
          steps: [...saved.steps],
          intervals: [...(measure?.intervals ?? [])],
          startsAt,
          by: saved.by ?? "",
          overtaken: saved.overtaken ?? false,
          window: -1,
        });
      }
      if (router.rollouts.readsSessions)
        intake.accept({ kind: "sessions-restored", at, keys: folder.conversations.read() });
      void this.saveMeasures(router.rollouts);
    } catch (error) {
      report({ kind: "state-failed", detail: `${folder.path}: ${messageOf(error)}`, done: "no rollout is under way" });
    }
  }

  /** All that is to be known of them elsewhere, but for what was measured. */
  saved(rollouts: Rollouts): SavedRollout[] {
    const { wallStartMicros } = this.#options;
    return rollouts.book.map((state): SavedRollout => {
      const { rules, profiles } = rollouts.spec(state.plan.name)!;
      const { steps, startsAt, by, overtaken } = this.#storyOf(state.plan.name);
      const planned = state.phase === "planned" ? { startsAt: startsAt + wallStartMicros, by } : {};
      return {
        state: movedState(state, wallStartMicros),
        rules,
        profiles,
        steps,
        ...planned,
        ...(overtaken && { overtaken }),
      };
    });
  }

  /** Another replica made the latest step of it. */
  adopt({ state, steps, startsAt, by = "", overtaken = false }: SavedRollout): void {
    const { wallStartMicros } = this.#options;
    const story = this.#storyOf(state.plan.name);
    story.steps.splice(0, Infinity, ...steps);
    Object.assign(story, { startsAt: (startsAt ?? 0) - wallStartMicros, by, overtaken });
  }

  /** A state that was kept, on the clock of this process. */
  moved(state: RolloutState): RolloutState {
    return movedState(state, -this.#options.wallStartMicros);
  }

  /** Plans and steps as they are now are to be on the disk. */
  save(rollouts: Rollouts): void {
    const { folder } = this.#options;
    if (folder === undefined) return;
    folder.orders.write(folder.rollouts, rolloutsText(this.saved(rollouts), [...this.#ended]));
    void this.saveMeasures(rollouts);
  }

  /** Why what was ordered until now may be lost, a line each; resolves soon. */
  unkept(shared: readonly Promise<string>[]): Promise<readonly string[]> {
    return unkeptOf(this.#options.folder, shared);
  }

  get wallStartMicros(): Micros {
    return this.#options.wallStartMicros;
  }

  /** A judge is another one now: it is written whole again. */
  replaced(rollouts: Rollouts, rollout: string): void {
    const watch = rollouts.watch(rollout);
    if (watch !== undefined) watch.noted = undefined;
  }

  /** What judges have seen, where it is time for it. */
  async saveMeasures(rollouts: Rollouts): Promise<void> {
    await this.#written(this.#measures.keep(rollouts));
  }

  async end(rollouts: Rollouts): Promise<void> {
    this.save(rollouts);
    await this.#options.folder?.orders.settled(ORDER_ANSWER_MILLIS);
    if (this.#options.folder !== undefined) await this.#written(this.#measures.writeWhole(rollouts));
  }

  async #written(writing: Promise<unknown>): Promise<void> {
    try {
      await writing;
      this.#failed = "";
    } catch (error) {
      const detail = `${this.#options.folder?.path ?? ""}: ${messageOf(error)}`;
      if (detail !== this.#failed) {
        const done = "rollouts go on; a restart would not know of what was measured since";
        this.#options.report({ kind: "state-failed", detail, done });
      }
      this.#failed = detail;
    }
  }

  #storyOf(rollout: string): Story {
    let story = this.#stories.get(rollout);
    if (story === undefined) {
      story = { steps: [], intervals: [], startsAt: 0, by: "", overtaken: false, window: -1 };
      this.#stories.set(rollout, story);
    }
    return story;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
