import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import type { Objective } from "#shadow/job/objective.ts";
import type { TrialMemory } from "#shadow/tune/search.ts";
import type { Traffic } from "../what-if/what-if-traffic.ts";

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
  #isTaken = false;

  /** Reads what is there; throws ConfigError where that is of another question. Nothing is kept without a file. */
  constructor(file: string | undefined, question: string) {
    this.#file = file;
    this.#question = question;
    this.#losses = file === undefined || !existsSync(file) ? new Map<string, number>() : read(file, question);
  }

  get size(): number {
    return this.#losses.size;
  }

  /** The file became another search's meanwhile, and is left to it. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  get(key: string): number | undefined {
    return this.#losses.get(key);
  }

  put(key: string, loss: number): void {
    if (this.#losses.size >= RESULTS_MAX || !Number.isFinite(loss)) return;
    this.#losses.set(key, loss);
    if (performance.now() - this.#savedMillis >= SAVE_MILLIS) this.save();
  }

  /** Whole or not at all, whenever the process ends; with what others who search the same have put there meanwhile. */
  save(): void {
    this.#savedMillis = performance.now();
    if (this.#file === undefined || this.#isTaken) return;
    const others = existsSync(this.#file) ? readOthers(this.#file) : undefined;
    if (others !== undefined && others.question !== this.#question) {
      this.#isTaken = true;
      return;
    }
    const losses = { ...others?.losses, ...Object.fromEntries(this.#losses) };
    // A name of its own: two that write one file would each rename the other's away.
    const part = `${this.#file}.${process.pid}.part`;
    writeFileSync(part, JSON.stringify({ version: VERSION, question: this.#question, losses }));
    renameSync(part, this.#file);
  }
}

/** What is there now; undefined where it is nothing that can be read, which is written over. */
function readOthers(file: string): z.infer<typeof SCHEMA> | undefined {
  try {
    return SCHEMA.safeParse(JSON.parse(readFileSync(file, "utf8"))).data;
  } catch {
    return undefined;
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

/** The same text for the same traffic, engines and objective, and what was observed of it under what was in force. */
export function questionDigest(
  { setting, inForce, observed }: Pick<Traffic, "setting" | "inForce" | "observed">,
  objective: Objective,
  split: number,
): string {
  const { workload, ...rest } = setting;
  const hash = createHash("sha256");
  hash.update(JSON.stringify([rest, objective, split]));
  for (const request of workload) {
    const { arrivalMicros, thinkMicros, session, parent, model, promptTokens, outputTokens, blockIds } = request;
    const own = [arrivalMicros, thinkMicros, session, parent, model, promptTokens, outputTokens, blockIds?.at(-1)];
    hash.update(JSON.stringify(own));
  }
  // How far the engine model was off decides what engines are drawn.
  if (observed !== undefined) hash.update(JSON.stringify([inForce.spec, observed.map(({ e2eMicros }) => e2eMicros)]));
  return hash.digest("hex");
}
