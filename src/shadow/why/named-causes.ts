import type { TimePart, SlowAnswer, SlowPart } from "./slow-answers.ts";
import { type Removable, CAUSES } from "./world.ts";

/** What is less of the whole is not named. */
const NAMED_SHARE_MIN = 0.02;

/** The causes that stand out of chance and of what the model does not know, the dearest first. */
export function namedCauses({ parts, micros }: Pick<SlowAnswer, "parts" | "micros">): SlowPart[] {
  const unexplained = parts.find(({ part }) => part === "unexplained")?.micros ?? 0;
  const least = Math.max(NAMED_SHARE_MIN * micros, Math.abs(unexplained));
  return parts
    .filter((one) => isCause(one.part) || SEEN.has(one.part))
    .filter((one) => one.micros > 0 && one.micros >= least && (one.interval === undefined || one.interval.low > 0))
    .sort((a, b) => b.micros - a.micros);
}

/** Parts that were seen and not simulated. */
const SEEN: ReadonlySet<TimePart> = new Set(["retries", "gateway"]);

export function isCause(part: TimePart): part is Removable {
  return (CAUSES as readonly string[]).includes(part);
}
