/**
 * Where cached tokens were lost that an ideal shared cache would have had:
 * - policy: another engine had them and the gateway knew it; something else weighed more, or a filter removed that engine;
 *   of another router's decisions, whatever it knew
 * - index: another engine had them and the gateway did not know it, or believed that the chosen one had them too
 * - evicted: engines had them and let them go, before the decision or while the request waited
 * - computing: they were being computed for somebody else, or waited for it
 * - gone: the engines that had computed them had left, lost their caches or were out of service
 * - refused: the gateway refused this request, or those that had sent the same before were and nobody ever computed it
 * - unexplained: by the sizes stated, the chosen engine had them; it reported fewer
 */
export const TOKEN_LOSSES = ["policy", "index", "evicted", "computing", "gone", "refused", "unexplained"] as const;
export type TokenLoss = (typeof TOKEN_LOSSES)[number];

/** What the gateway was offered of the endpoint that held most of the prompt beside the chosen one. */
export type Offer =
  /** Its row stands in the decision. */
  | "candidate"
  /** It was no candidate: out of service, or not for this model. */
  | "absent"
  /** The decision as it was recorded does not show it. */
  | "unrecorded";

/** How many leading tokens of one prompt were where, at its decision. None is negative. */
export interface TokenLevels {
  /** An ideal shared cache would have had, as far as an engine reads it. */
  readonly possible: number;
  /** Its engine found. */
  readonly hit: number;
  /** The chosen engine held, by its size; and when it gave the first token. */
  readonly chosenThen: number;
  readonly chosenLater: number;
  /** The gateway believed that the chosen engine held. */
  readonly believedChosen: number;
  /** The fullest other engine held, by its size. */
  readonly elsewhere: number;
  /** Of what another candidate held the gateway knew at most so many. */
  readonly knownElsewhere: number;
  readonly offer: Offer;
  /** Some engine that is there had computed since its cache was last empty. */
  readonly everHere: number;
  /** Anybody had ever computed. */
  readonly everComputed: number;
  /** Anybody was ever sent. */
  readonly everSent: number;
}

export interface LossPart {
  readonly loss: TokenLoss;
  readonly tokens: number;
}

/**
 * Every token between what was hit and what was possible, with exactly one reason: the parts add up to the difference.
 * Whatever is a prefix is lost from its end, so each reason holds an interval of the prompt.
 */
export function lossParts(levels: TokenLevels): LossPart[] {
  const { possible, hit } = levels;
  const cuts = [...new Set(thresholdsOf(levels))].filter((at) => at > hit && at < possible).sort((a, b) => a - b);
  const sums = new Map<TokenLoss, number>();
  let from = hit;
  for (const to of [...cuts, possible]) {
    if (to <= from) continue;
    const loss = lossAt(levels, to);
    sums.set(loss, (sums.get(loss) ?? 0) + to - from);
    from = to;
  }
  return TOKEN_LOSSES.flatMap((loss) => (sums.has(loss) ? [{ loss, tokens: sums.get(loss)! }] : []));
}

function thresholdsOf(levels: TokenLevels): number[] {
  const { chosenThen, chosenLater, believedChosen, elsewhere, knownElsewhere } = levels;
  const { everHere, everComputed, everSent } = levels;
  return [chosenThen, chosenLater, believedChosen, elsewhere, knownElsewhere, everHere, everComputed, everSent];
}

/** Why the token that ends at `end` was not hit. */
function lossAt(levels: TokenLevels, end: number): TokenLoss {
  if (end <= levels.chosenThen) return end <= levels.chosenLater ? "unexplained" : "evicted";
  if (end <= levels.elsewhere) {
    if (end <= levels.believedChosen) return "index";
    if (end <= levels.knownElsewhere) return "policy";
    if (levels.offer === "candidate") return "index";
    return levels.offer === "absent" ? "gone" : "unexplained";
  }
  if (end <= levels.everHere) return "evicted";
  if (end <= levels.everComputed) return "gone";
  return end <= levels.everSent ? "computing" : "refused";
}
