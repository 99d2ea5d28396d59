import type { TimePart, SlowAnswer, SlowPart } from "./slow-answers.ts";
import { type Removable, CAUSES } from "./world.ts";

/** What is less of the whole is not named first. */
const NAMED_SHARE_MIN = 0.02;

/** The cause to name first, if any stands out of chance and of what the model does not know. */
export function firstCause({ parts, micros }: SlowAnswer): SlowPart | undefined {
  const causes = parts.filter(({ part }) => isCause(part) || part === "retries");
  const first = causes.sort((a, b) => b.micros - a.micros)[0];
  const unexplained = parts.find(({ part }) => part === "unexplained")?.micros ?? 0;
  if (first === undefined || first.micros < NAMED_SHARE_MIN * micros) return undefined;
  if (first.micros < Math.abs(unexplained)) return undefined;
  return first.interval !== undefined && first.interval.low <= 0 ? undefined : first;
}

export function isCause(part: TimePart): part is Removable {
  return (CAUSES as readonly string[]).includes(part);
}
