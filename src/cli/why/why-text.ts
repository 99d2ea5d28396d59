import { isCause } from "#shadow/why/named-causes.ts";
import type { TokenSummary } from "#shadow/why/token-summary.ts";
import type { WhyAnswer } from "#shadow/why/why-answer.ts";
import { engineSentence, lossMeaning, meaningOf, nameOf, slowSentence, tokenSentence } from "#shadow/why/why-words.ts";
import { millisOf, percentOf, signedMillis, wrapped } from "../output/figure-text.ts";

const NAME_CHARS = 13;
const CHARS = 100;

/** The answer on one screen: the first cause with its figures, what was lost of the caches, and a table of each. */
export function explanationText(answer: WhyAnswer): string {
  const { slow, tokens } = answer;
  const engine = engineSentence(slow);
  return `${[
    wrapped(slowSentence(answer), CHARS),
    wrapped(tokenSentence(answer), CHARS),
    ...(engine === undefined ? [] : [wrapped(engine, CHARS)]),
    "",
    ...(slow.requests === 0 ? [] : [...slowTable(answer), ...aheadLines(answer), ""]),
    ...tokenTable(tokens),
    ...(slow.isExact ? [] : ["Causes in drawn orders: --work with more requests takes all."]),
  ].join("\n")}\n`;
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

function tokenTable(summary: TokenSummary): string[] {
  const { requests, promptTokens, newTokens, possible, hit, losses, modelled, byEvents } = summary;
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
      [
        "together",
        String(promptTokens),
        "",
        percentOf(1),
        `of which ${possible} possible; ${caches(requests, byEvents)}`,
      ],
    ],
  );
}

function caches(requests: number, byEvents: number): string {
  if (byEvents === 0) return "caches by their sizes";
  return byEvents === requests
    ? "caches by their KV events"
    : `caches by KV events for ${byEvents} of ${requests} requests`;
}

const NUMBER_CHARS = [10, 18, 8] as const;

function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  return [head, ...rows].map((cells) => {
    const [name = "", ...rest] = cells;
    const numbers = NUMBER_CHARS.map((width, i) => (rest[i] ?? "").padStart(width));
    return `${name.padEnd(NAME_CHARS)}${numbers.join("")}  ${rest[3] ?? ""}`.trimEnd();
  });
}
