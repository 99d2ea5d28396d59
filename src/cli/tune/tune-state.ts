import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import type { Setting } from "#shadow/question/candidate.ts";
import type { Objective } from "#shadow/tune/objective.ts";
import type { TrialMemory } from "#shadow/tune/search.ts";

const VERSION = 1;
/** Results that are kept; a search has fewer by far. */
const RESULTS_MAX = 1_000_000;
/** The file is written at most so often. */
const SAVE_MILLIS = 2_000;

const SCHEMA = z.strictObject({
  version: z.literal(VERSION),
  question: z.string(),
  losses: z.record(z.string(), z.number()),
});

/** Results of a search in a file, so that one that was interrupted goes on where it was. */
export class TuneState implements TrialMemory {
  readonly #file: string | undefined;
  readonly #question: string;
  readonly #losses: Map<string, number>;
  #savedMillis = performance.now();

  /** Reads what is there; throws ConfigError where that is of another question. Nothing is kept without a file. */
  constructor(file: string | undefined, question: string) {
    this.#file = file;
    this.#question = question;
    this.#losses = file === undefined || !existsSync(file) ? new Map<string, number>() : read(file, question);
  }

  get size(): number {
    return this.#losses.size;
  }

  get(key: string): number | undefined {
    return this.#losses.get(key);
  }

  put(key: string, loss: number): void {
    if (this.#losses.size >= RESULTS_MAX || !Number.isFinite(loss)) return;
    this.#losses.set(key, loss);
    if (performance.now() - this.#savedMillis >= SAVE_MILLIS) this.save();
  }

  /** Whole or not at all, whenever the process ends. */
  save(): void {
    this.#savedMillis = performance.now();
    if (this.#file === undefined) return;
    const part = `${this.#file}.part`;
    const losses = Object.fromEntries(this.#losses);
    writeFileSync(part, JSON.stringify({ version: VERSION, question: this.#question, losses }));
    renameSync(part, this.#file);
  }
}

function read(file: string, question: string): Map<string, number> {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new ConfigError([`--state: ${file} is no JSON: ${error instanceof Error ? error.message : String(error)}`]);
  }
  const checked = checkShape(SCHEMA, value);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem, `--state ${file}`)));
  if (checked.value.question !== question)
    throw new ConfigError([
      `--state: expected a file of the same trace, engine, fleet and objective, got one of another search in ${file}`,
    ]);
  return new Map(Object.entries(checked.value.losses));
}

/** The same text for the same traffic, engines and objective. */
export function questionDigest(setting: Setting, objective: Objective, split: number): string {
  const { workload, ...rest } = setting;
  const hash = createHash("sha256");
  hash.update(JSON.stringify([rest, objective, split]));
  for (const { arrivalMicros, thinkMicros, session, promptTokens, outputTokens, blockIds } of workload)
    hash.update(JSON.stringify([arrivalMicros, thinkMicros, session, promptTokens, outputTokens, blockIds?.at(-1)]));
  return hash.digest("hex");
}
