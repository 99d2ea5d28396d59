import { CascadeJudge } from "#core/cascade/cascade-judge.ts";
import type { CascadeLimits, CascadeStep } from "#core/cascade/cascade-spec.ts";

import { nowMicros } from "../base/clock.ts";
import type { PathRouter } from "#core/path/path-router.ts";
import { Cascades } from "./cascades.ts";

/** A cascade as the configuration has it. */
export interface CascadeChain {
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
