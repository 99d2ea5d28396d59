import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { ExplainedFigures, Explaining, Reproduction } from "#shadow/reproduce/reproduce.ts";
import type { Differences } from "#shadow/reproduce/differences.ts";
import { specChanges } from "#shadow/reproduce/spec-changes.ts";
import { wrapped } from "../output/figure-text.ts";
import { ownConfiguration } from "./own-configuration.ts";

/** A profile as it is shipped or stands in its file. */
export interface KnownProfile {
  readonly name: string;
  readonly spec: ProfileSpec;
  readonly source: string;
}

const CHARS = 100;
const ROWS_MAX = 8;
/** A router that makes this share of its own decisions alike again has no ties. */
const CERTAIN = 0.995;
/** One that makes fewer than this draws. */
const DRAWN_BELOW = 0.8;
/** Below this share of what a policy could explain, it is another one. */
const EXPLAINED_MIN = 0.9;
/** A gain that chance may have. */
const GAIN_MIN = 0.02;

/** The answer on one screen: the sentence, the best profiles, what the policy reads, and where it differs. */
export function reproductionText(answer: Reproduction, profiles: readonly KnownProfile[]): string {
  const known = new Map(profiles.map((one) => [one.name, one]));
  return `${[
    wrapped(sentence(answer, known), CHARS),
    "",
    ...itsOwn(answer),
    ...profileTable(answer.profiles, known),
    ...partTable(answer),
    ...differenceTable(answer.differences),
  ].join("\n")}\n`;
}

/** The policy that was found, as its router's team has it. */
function itsOwn({ router, best: { spec, heldOut } }: Reproduction): string[] {
  if (heldOut.gain < GAIN_MIN || explained(heldOut) < EXPLAINED_MIN) return [];
  const lines = ownConfiguration(router, spec);
  return lines.length === 0 ? [] : [...lines, ""];
}

/** What was found, in one sentence. */
export function sentence(
  { router, best, differences }: Reproduction,
  known: ReadonlyMap<string, KnownProfile>,
): string {
  const whose = router ?? "The router of this trace";
  const { heldOut } = best;
  const name = policyName(best, known);
  const count = `${heldOut.decisions.toLocaleString("en")} decisions that it was not fitted to`;
  if (heldOut.gain < GAIN_MIN)
    return `${whose}: nothing that was tried explains more than chance does (${percent(heldOut.blind)}); the nearest is ${name}, with ${percent(heldOut.share)} of ${count}.`;
  if (heldOut.own < DRAWN_BELOW) {
    const fit = explained(heldOut) >= EXPLAINED_MIN ? "as much as it would itself" : "and would itself";
    return `${whose}: ${name}, which leaves much to chance: it gives what was chosen ${percent(heldOut.share)} on average in ${count}, ${fit} (${percent(heldOut.own)}; chance alone ${percent(heldOut.blind)}).`;
  }
  const isOther = explained(heldOut) < EXPLAINED_MIN;
  const ties =
    heldOut.own < CERTAIN ? `, ${percent(heldOut.possible)} with those of its ties that went the other way` : "";
  const verb = isOther ? "is none of these policies; the nearest," : "decides as";
  const does = isOther ? ", explains" : ": it explains";
  return `${whose} ${verb} ${name}${does} ${percent(heldOut.share)} of ${count}${ties}${rest(heldOut, differences)}.`;
}

function rest({ possible }: ExplainedFigures, { decisions, speaks, signals }: Differences): string {
  if (decisions === 0) return "";
  const one = signals.find(({ signal }) => signal === speaks);
  const why =
    one === undefined
      ? "for which no signal of the trace speaks"
      : `of which ${one.theirs} of ${decisions} went where ${one.signal} are ${one.signal.startsWith("blocks") ? "more" : "fewer"}`;
  return `; the other ${percent(1 - possible)} are choices ${why}`;
}

/** Of what could be explained beyond chance. */
function explained({ share, own, blind }: ExplainedFigures): number {
  return own - blind <= 0 ? 0 : (share - blind) / (own - blind);
}

/** What of it is otherwise than in the profile that it is a variant of. */
export function changesOf(
  { spec, gauges, hasTieOrder }: Pick<Explaining, "spec" | "gauges" | "hasTieOrder">,
  profile: KnownProfile | undefined,
): string[] {
  const changes = profile === undefined ? [] : specChanges(profile.spec, spec);
  return [
    ...(hasTieOrder ? changes.filter((change) => !change.startsWith("max-score.tieBreak")) : changes),
    ...(hasTieOrder ? ["ties in a fixed order"] : []),
    ...(gauges === "" || gauges === "as recorded" ? [] : [`gauges ${gauges}`]),
  ];
}

function policyName(one: Explaining, known: ReadonlyMap<string, KnownProfile>): string {
  const { base } = one;
  const profile = known.get(base);
  const all = changesOf(one, profile);
  const source = profile === undefined ? "" : ` (${profile.source})`;
  return `${base}${source}${all.length === 0 ? "" : ` with ${all.join(", ")}`}`;
}

function profileTable(all: readonly Explaining[], known: ReadonlyMap<string, KnownProfile>): string[] {
  const shown = all.slice(0, ROWS_MAX);
  const names = shown.map(({ base }) => base);
  const width = Math.max(...names.map(({ length }) => length), "profile".length);
  const head = `${"profile".padEnd(width)}  fitted  held out  own  gain`;
  const rows = shown.map((one) => {
    const { fitted, heldOut, base } = one;
    const figures = [
      percent(fitted.share).padStart(6),
      percent(heldOut.share).padStart(8),
      percent(heldOut.own).padStart(6),
    ];
    const how = changesOf(one, known.get(base)).join(", ");
    return `${base.padEnd(width)}  ${figures.join("  ")}  ${heldOut.gain.toFixed(3)}  ${how}`.trimEnd();
  });
  return [head, ...rows, "own: what a router by that policy would have of it; gain: beyond chance", ""];
}

function partTable({ best, readings, without }: Reproduction): string[] {
  const rows = [
    ...without.map((one) => ({ what: one.changes.at(-1)!, one })),
    ...readings.map((one) => ({ what: `gauges ${one.gauges}`, one })),
  ];
  if (rows.length === 0) return [];
  const lines = rows.map(({ what, one }) => `  ${what.padEnd(28)}${percent(one.heldOut.share).padStart(7)}`);
  return [`held out, of ${percent(best.heldOut.share)}:`, ...lines, ""];
}

function differenceTable({ decisions, signals, requests }: Differences): string[] {
  if (decisions === 0) return [];
  const width = Math.max(...signals.map(({ signal }) => signal.length));
  const rows = signals.map(
    ({ signal, theirs, alike, ours, best }) =>
      `  ${signal.padEnd(width)}  ${String(theirs).padStart(6)}  ${String(alike).padStart(6)}  ${String(ours).padStart(6)}  ${String(best).padStart(6)}`,
  );
  return [
    `${decisions} held-out ${decisions === 1 ? "decision" : "decisions"} that it would not have made (first: ${requests.slice(0, 3).join(", ")}); by signal, for which endpoint it speaks:`,
    `  ${"".padEnd(width)}  theirs   alike    ours    best`,
    ...rows,
    "  best: theirs is the best of all",
    "",
  ];
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share > 0.995 && share < 1 ? 2 : 1)} %`;
}
