import { figureName } from "#shadow/why/figure-asked.ts";
import { firstCause, isCause } from "#shadow/why/first-cause.ts";
import type { TimePart, SlowAnswer, SlowPart } from "#shadow/why/slow-answers.ts";
import type { TokenRow } from "#shadow/why/token-ledger.ts";
import type { TokenLoss } from "#shadow/why/token-loss.ts";
import type { LossSum, TokenSummary } from "#shadow/why/token-summary.ts";
import { millisOf, percentOf, signedMillis, wrapped } from "../output/figure-text.ts";

export interface WhyAnswer {
  readonly inForce: string;
  /** The policy that it is held against. */
  readonly against: string;
  /** Of all requests, or of the one that was asked about. */
  readonly tokens: TokenSummary;
  readonly request?: TokenRow;
  readonly slow: SlowAnswer;
  /** Ids of the prompts that stood longest in others' way, as `slow.ahead.longest` has them. */
  readonly ahead: readonly string[];
  /** Requests that are not explained, by reason. */
  readonly left: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
}

const NAME_CHARS = 13;
const CHARS = 100;

/** The answer on one screen: the first cause with its figures, what was lost of the caches, and a table of each. */
export function explanationText(answer: WhyAnswer): string {
  const { slow, tokens } = answer;
  return `${[
    wrapped(slowSentence(answer), CHARS),
    wrapped(tokenSentence(answer), CHARS),
    "",
    ...(slow.requests === 0 ? [] : [...slowTable(answer), ...aheadLines(answer), ""]),
    ...tokenTable(tokens),
    ...(slow.isExact ? [] : ["Causes in drawn orders: --work with more requests takes all."]),
  ].join("\n")}\n`;
}

function slowSentence(answer: WhyAnswer): string {
  const { slow, request } = answer;
  const { figure, micros, isObserved, requests, inOnePiece, parts } = slow;
  const whose =
    request !== undefined
      ? `${figure.time.toUpperCase()} of ${request.requestId}`
      : `${figureName(figure)} of ${requests} ${requests === 1 ? "request" : "requests"}${othersThan(slow)}`;
  if (requests === 0) return `${whose}: not known, since ${whyNone(answer)}.`;
  const unseen = inOnePiece === 0 ? "" : `; ${inOnePiece} more came in one piece, which has no first token`;
  const millis = `${millisOf(micros)} ms${isObserved ? "" : " (simulated)"}`;
  const first = firstCause(slow);
  if (first !== undefined) {
    const share = percentOf(first.micros / micros);
    return `${sentenceCase(meaningOf(first.part, answer))}: that is ${millisOf(first.micros)} ms${within(first)}, ${share} of the ${whose}, ${millis}${unseen}.`;
  }
  const unexplained = parts.find(({ part }) => part === "unexplained");
  const largest = parts.find(({ part }) => isCause(part));
  const doubt =
    unexplained !== undefined &&
    largest !== undefined &&
    Math.abs(unexplained.micros) >= largest.micros &&
    largest.micros > 0
      ? `; ${signedMillis(unexplained.micros)} ms are unexplained, more than any cause, so calibrate an engine first`
      : "";
  const load = parts.find(({ part }) => part === "load")?.micros ?? 0;
  const own = parts.find(({ part }) => part === "own")?.micros ?? 0;
  return `No single cause stands out: the ${whose} is ${millis}, of which ${millisOf(own)} ms are the requests' own work and ${millisOf(Math.max(0, load))} ms ordinary load${doubt}${unseen}.`;
}

function whyNone({ slow: { inOnePiece }, request }: WhyAnswer): string {
  if (inOnePiece === 0) return "it has none in some simulation";
  const which = request === undefined ? "all answers came" : "its answer came";
  return `${which} in one piece, which has no first token: ask with --objective e2e-mean`;
}

function othersThan({ hotTenant }: SlowAnswer): string {
  return hotTenant === undefined ? "" : ` of others than tenant ${nameOf(hotTenant.tenant)}`;
}

function tokenSentence({ tokens, request }: WhyAnswer): string {
  const { possible, hit, losses, promptTokens } = tokens;
  const whose = request === undefined ? "" : " of it";
  if (possible === 0)
    return `None of ${promptTokens} prompt tokens${whose} could have been cached: nobody had sent them before.`;
  const most = losses[0];
  const found = `Of ${possible} cached tokens${whose} that were possible ${hit} were hit (${percentOf(hit / possible)})`;
  if (most === undefined) return `${found}.`;
  return `${found}; most others, ${most.tokens} (${percentOf(most.tokens / possible)}), were lost to ${most.loss}: ${lossMeaning(most, request)}.`;
}

function slowTable(answer: WhyAnswer): string[] {
  const { parts, micros } = answer.slow;
  const rows = parts
    .filter((one) => one.micros !== 0 || !isCause(one.part))
    .map((one) => [
      one.part,
      signed(one.micros),
      one.interval === undefined ? "" : `${signed(one.interval.low)}..${signed(one.interval.high)}`,
      percentOf(one.micros / micros),
      meaningOf(one.part, answer),
    ]);
  return tableOf(
    ["part", "ms", "90 %", "share", "what it is"],
    [
      ...rows,
      ["together", millisOf(micros), "", percentOf(1), answer.slow.isObserved ? "as observed" : "as simulated"],
    ],
  );
}

function signed(micros: number): string {
  return `${micros < 0 ? "-" : ""}${millisOf(Math.abs(micros))}`;
}

function within({ interval }: SlowPart): string {
  return interval === undefined ? "" : ` (90 %: ${signed(interval.low)} to ${signed(interval.high)})`;
}

function aheadLines({ slow: { ahead, stages }, ahead: ids }: WhyAnswer): string[] {
  const { queueMicros, prefillAloneMicros, prefillMoreMicros, decodeAloneMicros, decodeMoreMicros } = stages;
  const decode =
    decodeAloneMicros === 0
      ? ""
      : `, answer ${millisOf(decodeAloneMicros)} alone and ${signedMillis(decodeMoreMicros)}`;
  const where = `Simulated on the way, ms: queue ${millisOf(queueMicros)}, prefill ${millisOf(prefillAloneMicros)} alone and ${signedMillis(prefillMoreMicros)} by others and lost caches${decode}.`;
  if (ahead.longest.length === 0 || ahead.tokens < 1) return [wrapped(where, CHARS)];
  const tenants = ahead.tenants
    .filter(({ tenant }) => tenant !== "")
    .map(({ tenant, share }) => `${nameOf(tenant)} ${percentOf(share)}`);
  const [longest] = ahead.longest;
  const who = tenants.length === 0 ? "" : `, by tenant ${tenants.join(", ")}`;
  const most = `most by ${ids[0]}, ${Math.round(longest!.computedTokens)} tokens beside ${longest!.waited}`;
  return [
    wrapped(
      `${where} Computed for others meanwhile: ${ahead.tokens.toFixed(0)} tokens a request${who}; ${most}.`,
      CHARS,
    ),
  ];
}

function tokenTable({ promptTokens, newTokens, possible, hit, losses, modelled }: TokenSummary): string[] {
  const share = (tokens: number) => percentOf(promptTokens === 0 ? 0 : tokens / promptTokens);
  return tableOf(
    ["tokens", "", "", "share", "what it is"],
    [
      ["new", String(newTokens), "", share(newTokens), "nobody had sent them before"],
      [
        "hit",
        String(hit),
        "",
        share(hit),
        modelled === 0 ? "as engines reported" : `by cache size for ${modelled} requests, whose engines report none`,
      ],
      ...losses.map((one) => [one.loss, String(one.tokens), "", share(one.tokens), lossMeaning(one)]),
      ["together", String(promptTokens), "", percentOf(1), `of which ${possible} possible`],
    ],
  );
}

function lossMeaning({ loss, by }: LossSum, request?: TokenRow): string {
  const who = by
    .filter(({ name }) => name !== "")
    .slice(0, 2)
    .map(({ name }) => name);
  const named = who.length === 0 ? "" : who.join(", ");
  const meanings: Readonly<Record<TokenLoss, string>> = {
    policy: `another engine had them, ${named === "" ? "others" : named} weighed more`,
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

function meaningOf(part: TimePart, { slow, inForce, against }: WhyAnswer): string {
  switch (part) {
    case "index":
      return "the gateway did not know what caches held";
    case "policy":
      return `${inForce} decided, not ${against}`;
    case "cache":
      return "too few KV blocks, for what comes again or all that runs";
    case "tenant": {
      const { tenant = "", share = 0 } = slow.hotTenant ?? {};
      return `tenant ${nameOf(tenant)} has ${percentOf(share)} of all tokens computed`;
    }
    case "engines":
      return slow.slowEngines.length === 0
        ? "single engines are slower than the fleet"
        : slow.slowEngines
            .map(({ endpoint, factor }) => `${endpoint} is ${factor.toFixed(2)} times as slow`)
            .join(", ");
    case "faults":
      return "engines left, were lost, slept or hung";
    case "retries":
      return "attempts before the last one";
    case "load":
      return "waiting for each other, without all of the above";
    case "own":
      return "prompt and answer alone on an engine";
    case "unexplained":
      return "observed beyond what is simulated";
  }
}

function nameOf(tenant: string): string {
  return tenant === "" ? "without a name" : tenant;
}

function sentenceCase(text: string): string {
  return text === "" ? text : text[0]!.toUpperCase() + text.slice(1);
}

const NUMBER_CHARS = [10, 18, 8] as const;

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, ...rows].map((cells) => {
    const [name = "", ...rest] = cells;
    const numbers = NUMBER_CHARS.map((width, i) => (rest[i] ?? "").padStart(width));
    return `${name.padEnd(NAME_CHARS)}${numbers.join("")}  ${rest[3] ?? ""}`.trimEnd();
  });
}
