import * as z from "zod";
import { ConfigError } from "./config-error.ts";
import { checkShape, type Problem, problemLine } from "./problem.ts";
import { type YamlFile, parseYamlFile, readYamlFile } from "./yaml-file.ts";

const KEYS_MAX = 10_000;
const CLASSES_MAX = 32;

const name = () =>
  z
    .string()
    .regex(/^[\w.:-]{1,64}$/)
    .meta({ expected: "1 to 64 of letters, digits, _ . : -" });

const className = () => z.string().max(64).meta({ expected: "at most 64 characters" });

const key = z.strictObject({
  name: name().describe("Of the key, for those who keep the file."),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .meta({ expected: "a key's SHA-256, 64 hexadecimal digits, as `gnomon keys hash` prints it" })
    .describe("The key itself is in no file."),
  tenant: name().optional().describe("Who asks with it, for quotas and fairness; the key's name where left out."),
  class: className().default("").describe("Service class of its requests."),
  classes: z.array(className()).max(CLASSES_MAX).default([]).describe("Others that its requests may name."),
  expires: z.iso.datetime({ offset: true }).optional().describe("From then on it opens nothing."),
});

/** Of the keys' file nothing is shown: who writes one by hand writes keys where entries, or other fields of one, belong. */
const SCHEMA = z.strictObject({ keys: z.array(key).max(KEYS_MAX) }).meta({ secret: true });

/** A key as a file holds it. */
export type KeyEntry = z.infer<typeof key>;

/** Reads a file of keys; throws ConfigError with every problem, none of which shows a digest. */
export function readKeysFile(file: string): KeyEntry[] {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  return checked(file, yaml.value);
}

/** The same of its text. */
export function parseKeysFile(file: string, text: string): KeyEntry[] {
  const yaml = parseYamlFile(file, text);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  return checked(file, yaml.value);
}

function checked(file: string, { value, lineOf }: YamlFile): KeyEntry[] {
  // Entries alone, as `gnomon keys new >> FILE` leaves them in a file that was not there, are a file too.
  const isBare = Array.isArray(value);
  const lineOfProblem = (problem: Problem) =>
    problemLine(problem, `${file} line ${lineOf(isBare ? problem.path.slice(1) : problem.path)}`);
  const shape = checkShape(SCHEMA, isBare ? { keys: value } : value);
  if (!shape.ok) throw new ConfigError(shape.problems.map(lineOfProblem));
  const { keys } = shape.value;
  const problems: Problem[] = [];
  const seen = { name: new Set<string>(), sha256: new Set<string>() };
  keys.forEach((entry, i) => {
    for (const field of ["name", "sha256"] as const) {
      if (seen[field].has(entry[field])) problems.push({ path: ["keys", i, field], message: "is there twice" });
      seen[field].add(entry[field]);
    }
  });
  if (problems.length > 0) throw new ConfigError(problems.map(lineOfProblem));
  return keys;
}
