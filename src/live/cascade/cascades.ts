import { CascadeRun, type CascadeVerdict, isJudged } from "./cascade-run.ts";
import {
  CascadeJudge,
  type CascadeLimits,
  type CascadeSpec,
  type CascadeStep,
} from "#core/path/cascade/cascade-judge.ts";
import type { CascadeHost } from "#core/path/cascade/cascade.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { StageFamily } from "../base/stage-family.ts";
import type { AnswerJudge, AnswerJudges, JudgeAsker } from "../answer/answer-judge.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import { nowMicros } from "../base/clock.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import type { PathStage } from "#core/path/stage.ts";

/** The cascades of a gateway, by the names that clients ask for, and what their answers came to. */
export class Cascades implements AnswerJudges {
  readonly desk: CascadeJudge;
  readonly host: CascadeHost;
  /** By cascade and verdict; each only grows. */
  readonly counts = new Map<string, Record<string, number>>();
  readonly #specs = new Map<string, CascadeSpec>();

  constructor(specs: readonly CascadeSpec[], desk: CascadeJudge, host: CascadeHost) {
    this.desk = desk;
    this.host = host;
    for (const spec of specs) {
      this.#specs.set(spec.name, spec);
      this.counts.set(spec.name, {});
    }
  }

  get names(): readonly string[] {
    return [...this.#specs.keys()];
  }

  /** One whose answer cannot be judged goes to the last model, which is the best. */
  begin(asking: JudgeAsker, name: string, parsed: ParsedRequest, body: Buffer): string | undefined {
    const spec = this.#specs.get(name);
    if (spec === undefined) return undefined;
    if (asking.answeredElsewhere === true || !isJudged(parsed, asking.route.dialect)) {
      this.count(name, "unjudged");
      return spec.steps.at(-1)!.model;
    }
    const run = new CascadeRun(this, spec, { parsed, body, dialect: asking.route.dialect });
    asking.judge = run;
    return run.step.model;
  }

  count(name: string, verdict: CascadeVerdict): void {
    countUp(this.counts.get(name)!, verdict);
  }
}

export const CASCADE_FAMILIES: readonly StageFamily<Cascades>[] = [
  {
    type: "counter",
    name: "cascade_answers_total",
    help: "Answers of cascades, by outcome.",
    rows: ({ counts }) =>
      [...counts].flatMap(([cascade, verdicts]) =>
        Object.entries(verdicts).map(([verdict, value]) => ({ value, labels: { cascade, verdict } })),
      ),
  },
  {
    type: "gauge",
    name: "cascade_escalations_in_flight",
    help: "Requests under way at a later model of their cascade than the first.",
    rows: ({ desk }) => [{ value: desk.escalationsInFlight }],
  },
  {
    type: "gauge",
    name: "cascade_held_bytes",
    help: "Bytes of streams held back until they are judged.",
    rows: ({ desk }) => [{ value: desk.heldBytes }],
  },
];

/** A cascade as the configuration has it. */
interface CascadeChain {
  readonly name: string;
  readonly steps: readonly { readonly model: string; readonly logprobMin?: number | undefined }[];
  /** All where it is left out. */
  readonly judgedTokens?: number | undefined;
}

export interface CascadeOptions extends CascadeLimits {
  readonly chains: readonly CascadeChain[];
}

/** Undefined where there is none. */
export function createCascades(options: CascadeOptions | undefined, router: PathRouter): Cascades | undefined {
  if (options === undefined || !isAsked(options)) return undefined;
  const specs = options.chains.map(({ name, steps, judgedTokens }) => ({
    name,
    steps: steps.map(stepOf),
    judgedTokensMax: judgedTokens ?? Infinity,
  }));
  return new Cascades(specs, new CascadeJudge(options), { now: nowMicros, router });
}

function isAsked(options: CascadeOptions | undefined): boolean {
  return options !== undefined && options.chains.length > 0;
}

/** The stage of requests whose answers are judged; none where nobody can ask for that. */
export function judgedAnswers(
  options: CascadeOptions | undefined,
): readonly ((exchange: { readonly judge: AnswerJudge | undefined }) => PathStage | undefined)[] {
  return isAsked(options) ? [({ judge }) => judge?.stage] : [];
}

function stepOf({ model, logprobMin }: CascadeChain["steps"][number]): CascadeStep {
  return logprobMin === undefined ? { model } : { model, logprobMin };
}
