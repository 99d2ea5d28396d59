import { readFile } from "node:fs/promises";
import * as z from "zod";
import { DISTRIBUTION } from "./distribution.ts";
import { yamlValueOf } from "../yaml-text.ts";
import { ImportError } from "./import-report.ts";
import { unreadable } from "./unreadable.ts";
import { strict } from "./strict-object.ts";

/** A longer specification is a mistake. */
const SPEC_BYTES_MAX = 1_048_576;

const rate = z.number().positive().max(1_000_000);

const ARRIVALS = z.discriminatedUnion(
  "process",
  [
    strict({ process: z.literal("constant"), ratePerSecond: rate }),
    strict({ process: z.literal("poisson"), ratePerSecond: rate }),
    /** Gamma gaps: `cv` is their coefficient of variation, 1 being Poisson and more being burstier. */
    strict({ process: z.literal("gamma"), ratePerSecond: rate, cv: z.number().positive().max(100) }),
    /** Weibull gaps: a shape below 1 is burstier than Poisson. */
    strict({ process: z.literal("weibull"), ratePerSecond: rate, shape: z.number().min(0.1).max(100) }),
    /** Poisson at `burstFactor` times the rate for `burstSeconds`, then at what keeps the mean for `quietSeconds`. */
    strict({
      process: z.literal("bursty"),
      ratePerSecond: rate,
      burstFactor: z.number().min(1).max(1_000),
      burstSeconds: z.number().positive().max(1e6),
      quietSeconds: z.number().positive().max(1e6),
    }).refine((value) => value.burstFactor * value.burstSeconds <= value.burstSeconds + value.quietSeconds, {
      path: ["burstFactor"],
      error: "expected at most (burstSeconds + quietSeconds) / burstSeconds, or quiet times would have a negative rate",
    }),
    /** Everything at the start. */
    strict({ process: z.literal("together") }),
  ],
  { error: "expected process: constant, poisson, gamma, weibull, bursty or together" },
);

const GROUP = strict({
  name: z.string().min(1),
  /** Share of the conversations, relative to the other groups. */
  weight: z.number().positive().default(1),
  /** Distinct prefixes in the group, each shared by the conversations that draw it. */
  prefixes: z.int().positive().max(1_000_000).default(1),
  /** Popularity of the k-th prefix is 1 / k^exponent; 0 draws them evenly. */
  zipfExponent: z.number().nonnegative().max(10).default(0),
  /** Length of each shared prefix, after the common one, rounded down to whole blocks. */
  prefixTokens: DISTRIBUTION.prefault(0),
  /** New tokens that each turn brings. */
  userTokens: DISTRIBUTION,
  outputTokens: DISTRIBUTION,
  turns: DISTRIBUTION.prefault(1),
  /** Between the end of an answer and the next turn. */
  thinkSeconds: DISTRIBUTION.prefault(0),
  tenant: z.string().default(""),
  sloClass: z.string().default(""),
  model: z.string().default(""),
});

const WINDOW = strict({
  startSeconds: z.number().nonnegative().max(1e9),
  endSeconds: z.number().positive().max(1e9),
  /** On the rate of the arrivals; 0 for none. */
  factor: z.number().nonnegative().max(10_000).default(1),
}).refine((value) => value.startSeconds < value.endSeconds, {
  path: ["endSeconds"],
  error: "expected more than startSeconds",
});

const millis = z.number().positive().max(1e9);
const TARGET = strict({ ttftMillis: millis.optional(), tpotMillis: millis.optional(), e2eMillis: millis.optional() });

const SPEC = strict({
  /** Overrides the seed of the options. */
  seed: z.int().nonnegative().optional(),
  conversations: z.int().positive().max(10_000_000),
  arrivals: ARRIVALS,
  /** When conversations begin at all, and how many: outside of all windows there are none. Without any: always. */
  windows: z.array(WINDOW).max(10_000).default([]),
  /** The rate rises and falls in every period, its mean being that of the arrivals. */
  diurnal: strict({
    periodSeconds: z.number().positive().max(1e9).default(86_400),
    peakAtSeconds: z.number().nonnegative().max(1e9).default(0),
    peakToTrough: z.number().min(1).max(1_000),
  }).optional(),
  /** What a class is promised; "*" is for classes that are not named. */
  sloTargets: z.record(z.string(), TARGET).default({}),
  blockTokens: z.int().positive().max(4_096).default(16),
  /** Tokens that every prompt begins with, rounded down to whole blocks. */
  commonPrefixTokens: z.int().nonnegative().max(10_000_000).default(0),
  groups: z.array(GROUP).min(1).max(10_000),
});

export type SyntheticSpec = z.output<typeof SPEC>;
export type SyntheticGroup = z.output<typeof GROUP>;

/** Reads a specification file; throws ImportError with every problem, its path and what is accepted. */
export async function loadSyntheticSpec(path: string): Promise<SyntheticSpec> {
  return parseSyntheticSpec(path, await readSpecText(path));
}

export function parseSyntheticSpec(path: string, text: string): SyntheticSpec {
  return parseSpec(SPEC, path, text);
}

export async function readSpecText(path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new ImportError(`${path}: ${unreadable(error)}`);
  }
  if (text.length > SPEC_BYTES_MAX) throw new ImportError(`${path}: expected at most ${SPEC_BYTES_MAX} bytes`);
  return text;
}

/** YAML by a schema; throws ImportError with every problem, its path and what is accepted. */
export function parseSpec<S extends z.ZodType>(schema: S, path: string, text: string): z.output<S> {
  const read = yamlValueOf(text);
  if (!read.ok) throw new ImportError(`${path}: not YAML: ${read.message}`);
  const result = schema.safeParse(read.value);
  if (result.success) return result.data;
  const lines = result.error.issues.map((issue) => `${path}: ${at(issue.path)}${describe(issue)}`);
  throw new ImportError(lines.join("\n"));
}

function at(path: readonly PropertyKey[]): string {
  const text = path.map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  return text === "" ? "" : `${text.replace(/^\./, "")}: `;
}

/** Of a distribution that is neither a number nor an object of a known kind, the deepest complaint. */
function describe(issue: z.core.$ZodIssue): string {
  if (issue.code !== "invalid_union") return issue.message;
  const inner = issue.errors.findLast((errors) => errors.length > 0)?.[0];
  if (inner === undefined) return issue.message;
  const where = at(inner.path);
  return where === "" ? `expected a number, or ${inner.message}` : `${where}${inner.message}`;
}
