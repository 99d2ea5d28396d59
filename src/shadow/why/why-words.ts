import { capitalised, millis, percent, signedTime, time } from "#page/part/format.ts";
import type { SlowEngine } from "./engine-speeds.ts";
import { figureName } from "./figure-asked.ts";
import { isCause, namedCauses } from "./named-causes.ts";
import type { SlowAnswer, SlowPart, TimePart } from "./slow-answers.ts";
import type { TokenRow } from "./token-ledger.ts";
import type { TokenLoss } from "./token-loss.ts";
import type { LossSum } from "./token-summary.ts";
import type { WhyAnswer } from "./why-answer.ts";

/** What is why answers are slow, in a sentence or two. */
export function slowSentence(answer: WhyAnswer): string {
  const { slow, request } = answer;
  const { figure, micros, isObserved, requests, inOnePiece, parts } = slow;
  const whose =
    request !== undefined
      ? `${figure.time.toUpperCase()} of ${request.requestId}`
      : `${figureName(figure)} of ${requests} ${requests === 1 ? "request" : "requests"}${othersThan(slow)}`;
  if (requests === 0) return `${whose}: not known, since ${whyNone(answer)}.`;
  const unseen = inOnePiece === 0 ? "" : `; ${inOnePiece} more came in one piece, which has no first token`;
  const whole = `${time(micros)}${isObserved ? "" : " (simulated)"}`;
  const [first, ...others] = namedCauses(slow);
  if (first !== undefined) {
    const share = percent(first.micros / micros);
    const more = others.map((one) => ` Beside it ${meaningOf(one.part, answer)}: ${time(one.micros)}${within(one)}.`);
    return `${capitalised(meaningOf(first.part, answer))}: that is ${time(first.micros)}${within(first)}, ${share} of the ${whose}, ${whole}${unseen}.${more.join("")}`;
  }
  const unexplained = parts.find(({ part }) => part === "unexplained");
  const largest = parts.find(({ part }) => isCause(part));
  const doubt =
    unexplained !== undefined &&
    largest !== undefined &&
    Math.abs(unexplained.micros) >= largest.micros &&
    largest.micros > 0
      ? `; ${signedTime(unexplained.micros)} are unexplained, more than any cause, so calibrate an engine first`
      : "";
  const load = parts.find(({ part }) => part === "load")?.micros ?? 0;
  const own = parts.find(({ part }) => part === "own")?.micros ?? 0;
  return `No single cause stands out: the ${whose} is ${whole}, of which ${time(own)} are the requests' own work and ${time(Math.max(0, load))} ordinary load${doubt}${unseen}.`;
}

function whyNone({ slow: { inOnePiece }, request }: WhyAnswer): string {
  if (inOnePiece === 0) return "it has none in some simulation";
  const which = request === undefined ? "all answers came" : "its answer came";
  return `${which} in one piece, which has no first token: ask with --objective e2e-mean`;
}

function othersThan({ hotTenant }: SlowAnswer): string {
  return hotTenant === undefined ? "" : ` of others than tenant ${nameOf(hotTenant.tenant)}`;
}

/** What was lost of the caches. */
export function tokenSentence({ tokens, request }: WhyAnswer): string {
  const { possible, hit, losses, promptTokens } = tokens;
  const whose = request === undefined ? "" : " of it";
  if (possible === 0)
    return `None of ${promptTokens} prompt tokens${whose} could have been cached: nobody had sent them before.`;
  const most = losses[0];
  const found = `Of ${possible} cached tokens${whose} that were possible ${hit} were hit (${percent(hit / possible)})`;
  if (most === undefined) return `${found}.`;
  return `${found}; most others, ${most.tokens} (${percent(most.tokens / possible)}), were lost to ${most.loss}: ${lossMeaning(most, request)}.`;
}

/** Whose times are simulated, where they are not those of the engine as it was given or found. */
export function engineSentence({ refit }: SlowAnswer): string | undefined {
  if (refit === undefined) return undefined;
  const { endpoints, before, after } = refit;
  return `The engine's times were fitted anew to these requests at ${endpoints.join(", ")}: half of the first tokens are simulated within ${percent(after)}; with what it was before, within ${percent(before)}.`;
}

export function lossMeaning({ loss, by }: LossSum, request?: TokenRow): string {
  const who = by
    .filter(({ name }) => name !== "")
    .slice(0, 2)
    .map(({ name }) => name);
  const named = who.length === 0 ? "" : who.join(", ");
  const meanings: Readonly<Record<TokenLoss, string>> = {
    policy: `another engine had them, ${named === "" ? "it was sent elsewhere" : `${named} weighed more`}`,
    index: "another engine had them, and the gateway did not know",
    evicted: `engines let them go${named === "" ? "" : `, most at ${named}`}`,
    computing: "somebody else's prompt was still being computed",
    gone: "their engine had left, restarted or was out of service",
    refused: "refused, or never computed since others were",
    unexplained: "their engine held them by its size, and reported fewer",
  };
  const other = request?.elsewhere;
  if (other === undefined || (loss !== "policy" && loss !== "index")) return meanings[loss];
  return `${meanings[loss]} (${other.endpoint} had ${other.tokens})`;
}

export function meaningOf(part: TimePart, { slow, inForce, against }: WhyAnswer): string {
  switch (part) {
    case "index":
      return "the gateway did not know what caches held";
    case "policy":
      return `${inForce} decided, not ${against}`;
    case "cache":
      return "too few KV blocks, for what comes again or all that runs";
    case "tenant": {
      const { tenant = "", share = 0 } = slow.hotTenant ?? {};
      return `tenant ${nameOf(tenant)} has ${percent(share)} of all tokens computed`;
    }
    case "engines":
      return slow.slowEngines.length === 0
        ? "single engines are slower than the fleet"
        : slow.slowEngines.map(speedOf).join(", ");
    case "faults":
      return "engines left, were lost, slept or hung";
    case "transfer":
      return "blocks on their way between engines";
    case "retries":
      return "attempts before the last one";
    case "gateway":
      return "in the gateway: the prompt became tokens, or waited for its turn";
    case "load":
      return "waiting for each other, without all of the above";
    case "own":
      return "prompt and answer alone on an engine";
    case "unexplained":
      return "observed beyond what is simulated";
  }
}

function speedOf({ endpoint, factor, prefillFactor }: SlowEngine): string {
  const slower = factor > 1 ? [`${factor.toFixed(2)} times as slow`] : [];
  const more = prefillFactor > 1 ? [`${prefillFactor.toFixed(2)} times as slow at prompts`] : [];
  return `${endpoint} is ${[...slower, ...more].join(" and ")}`;
}

export function nameOf(tenant: string): string {
  return tenant === "" ? "without a name" : tenant;
}

function within({ interval }: SlowPart): string {
  return interval === undefined ? "" : ` (90 %: ${millis(interval.low)} to ${millis(interval.high)})`;
}
