import { Option } from "commander";
import { RARE } from "#drive/rare-option.ts";
import { PATH_RULES, type PathRules } from "#core/path/path-rules.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { amount, share } from "./flag-number.ts";
import { listOf } from "./list-flag.ts";

const HEDGE_MILLIS_MAX = 1e8;
const AFTER = "--hedge-after <millis>";
const MEANING = "send requests that have no token after this time to a second engine too, as limits.hedgeMillis does";

function shareOption(): Option {
  return new Option("--hedge-share <share>", "share of requests for which this is allowed, beyond the first few")
    .argParser(share)
    .default(PATH_RULES.hedge.shareMax)
    .helpGroup(RARE);
}

/** One time, for one run. */
export function hedgeOptions(): readonly Option[] {
  return [new Option(AFTER, MEANING).argParser(amount(1, HEDGE_MILLIS_MAX)).helpGroup(RARE), shareOption()];
}

/** Times that are asked about, one after another. */
export function askedHedgeOptions(again: string): readonly Option[] {
  const asked = new Option(AFTER, `ask about a gateway that is to ${MEANING}; ${again}`);
  return [
    asked
      .argParser(listOf(amount(1, HEDGE_MILLIS_MAX)))
      .default([])
      .helpGroup(RARE),
    shareOption(),
  ];
}

/** The gateway's own rules about faults, or others, with that. */
export function hedgeRules(afterMillis: number, shareMax: number, rules: PathRules = PATH_RULES): PathRules {
  return {
    ...rules,
    waits: { ...rules.waits, hedgeMicros: afterMillis * MICROS_PER_MILLI },
    hedge: { ...rules.hedge, shareMax },
  };
}
