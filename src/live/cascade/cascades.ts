import { CascadeJudge } from "#core/cascade/cascade-judge.ts";
import type { CascadeHost } from "#core/path/cascade/cascade.ts";
import type { KeptReason } from "#core/request/cascade-input.ts";
import type { CascadeSpec, CascadeLimits, CascadeStep } from "#core/cascade/cascade-spec.ts";
import { countUp } from "../base/gateway-counters.ts";
import type { Route } from "../http/route.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import { CascadeRun } from "./cascade-run.ts";
import { isJudged } from "./is-judged.ts";
import { nowMicros } from "../base/clock.ts";
import type { PathRouter } from "#core/path/path-router.ts";

/** A request that may ask for a cascade, which is then its own. */
interface CascadeAsker {
  readonly route: Route;
  /** Somebody else writes the answer, and would not hold it back. */
  readonly answeredElsewhere?: true;
  cascade?: CascadeRun | undefined;
}

/** What became of an answer of a cascade, or of a request to one: unjudged ones went to its last model at once. */
export type CascadeVerdict = KeptReason | "escalated" | "unjudged";

/** The cascades of a gateway, by the names that clients ask for, and what their answers came to. */
export class Cascades {
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

  /**
   * The model that a request goes to which asked for `name`; undefined where that is no cascade. One whose answer cannot be
   * judged goes to the last model, which is the best.
   */
  begin(asking: CascadeAsker, name: string, parsed: ParsedRequest, body: Buffer): string | undefined {
    const spec = this.#specs.get(name);
    if (spec === undefined) return undefined;
    if (asking.answeredElsewhere === true || !isJudged(parsed, asking.route.dialect)) {
      this.count(name, "unjudged");
      return spec.steps.at(-1)!.model;
    }
    const run = new CascadeRun(this, spec, { parsed, body, dialect: asking.route.dialect });
    asking.cascade = run;
    return run.step.model;
  }

  count(name: string, verdict: CascadeVerdict): void {
    countUp(this.counts.get(name)!, verdict);
  }
}

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
  if (options === undefined || options.chains.length === 0) return undefined;
  const specs = options.chains.map(({ name, steps, judgedTokens }) => ({
    name,
    steps: steps.map(stepOf),
    judgedTokensMax: judgedTokens ?? Infinity,
  }));
  return new Cascades(specs, new CascadeJudge(options), { now: nowMicros, router });
}

function stepOf({ model, logprobMin }: CascadeChain["steps"][number]): CascadeStep {
  return logprobMin === undefined ? { model } : { model, logprobMin };
}
