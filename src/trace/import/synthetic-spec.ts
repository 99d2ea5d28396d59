import { readFile } from "node:fs/promises";
import { parseDocument } from "yaml";
import * as z from "zod";
import { DISTRIBUTION } from "./distribution.ts";
import { ImportError } from "./import-report.ts";
import { unreadable } from "./line-reader.ts";
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
    /** Everything at the start. */
    strict({ process: z.literal("together") }),
  ],
  { error: "expected process: constant, poisson, gamma or together" },
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

const SPEC = strict({
  /** Overrides the seed of the options. */
  seed: z.int().nonnegative().optional(),
  conversations: z.int().positive().max(10_000_000),
  arrivals: ARRIVALS,
  blockTokens: z.int().positive().max(4_096).default(16),
  /** Tokens that every prompt begins with, rounded down to whole blocks. */
  commonPrefixTokens: z.int().nonnegative().max(10_000_000).default(0),
  groups: z.array(GROUP).min(1).max(10_000),
});

export type SyntheticSpec = z.output<typeof SPEC>;
export type SyntheticGroup = z.output<typeof GROUP>;

/** Reads a specification file; throws ImportError with every problem, its path and what is accepted. */
export async function loadSyntheticSpec(path: string): Promise<SyntheticSpec> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new ImportError(`${path}: ${unreadable(error)}`);
  }
  if (text.length > SPEC_BYTES_MAX) throw new ImportError(`${path}: expected at most ${SPEC_BYTES_MAX} bytes`);
  return parseSyntheticSpec(path, text);
}

export function parseSyntheticSpec(path: string, text: string): SyntheticSpec {
  const document = parseDocument(text, { uniqueKeys: true });
  const [fault] = document.errors;
  if (fault !== undefined) throw new ImportError(`${path}: not YAML: ${fault.message}`);
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  const result = SPEC.safeParse(value);
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
