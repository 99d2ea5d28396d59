import { createHash } from "node:crypto";
import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import { readYamlFile } from "#config/yaml-file.ts";

const AXES_MAX = 16;
const VALUES_MAX = 10_000;
/** Beyond them a sweep is a slip. */
const POINTS_MAX = 100_000;

const scalar = z.union([z.string(), z.number(), z.boolean()]);
const name = z
  .string()
  .regex(/^[a-z][a-z0-9-]{0,63}$/)
  .meta({ expected: "an option of the command without its dashes" });

const SCHEMA = z.strictObject({
  command: z.enum(["what-if", "simulate"]).describe("What is run at each point."),
  trace: z.string().min(1).optional().describe("The trace or workload that what-if is asked about."),
  options: z
    .record(name, z.union([scalar, z.array(scalar).max(VALUES_MAX)]))
    .default({})
    .describe("Options that all points have; true for one without a value, a list for one that is repeated."),
  grid: z
    .record(
      name,
      z
        .array(z.union([scalar, z.array(scalar).max(VALUES_MAX)]))
        .min(1)
        .max(VALUES_MAX),
    )
    .refine((axes) => Object.keys(axes).length >= 1 && Object.keys(axes).length <= AXES_MAX, {
      message: `1 to ${AXES_MAX} options with the values that they take in turn`,
    })
    .describe("Options that differ, each with its values; every combination is a point."),
});

export type SweepCommandName = z.output<typeof SCHEMA>["command"];
type Value = string | number | boolean | readonly (string | number | boolean)[];

/** One combination of the grid. */
export interface SweepPoint {
  /** From 0 on; the last axis turns fastest. */
  readonly index: number;
  readonly axes: Readonly<Record<string, Value>>;
  /** The command line that is run, without the command. */
  readonly argv: readonly string[];
}

export interface Sweep {
  readonly command: SweepCommandName;
  /** What is swept: equal for files that describe the same sweep, however they are written. */
  readonly digest: string;
  readonly points: readonly SweepPoint[];
}

/** Options that state where a result goes, which the sweep itself decides. */
const NOT_SWEPT: ReadonlySet<string> = new Set(["json", "html", "hpa", "threads", "results-path", "requests-path"]);

/** Reads a description of a sweep. Throws ConfigError with every problem, each with its line. */
export function readSweep(file: string): Sweep {
  const yaml = readYamlFile(file);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const { value, lineOf } = yaml.value;
  const shape = checkShape(SCHEMA, value);
  const refuse = (path: readonly (string | number)[], message: string): never => {
    throw new ConfigError([problemLine({ path, message }, `${file} line ${lineOf(path)}`)]);
  };
  if (!shape.ok)
    throw new ConfigError(shape.problems.map((one) => problemLine(one, `${file} line ${lineOf(one.path)}`)));
  const { command, trace, options, grid } = shape.value;
  if ((command === "what-if") !== (trace !== undefined))
    refuse(["trace"], `expected ${command === "what-if" ? "a trace or a workload" : "none, which simulate has not"}`);
  for (const [section, names] of [
    ["options", Object.keys(options)],
    ["grid", Object.keys(grid)],
  ] as const) {
    for (const one of names) {
      if (NOT_SWEPT.has(one)) refuse([section, one], "expected none, since the sweep decides where results go");
    }
  }
  for (const one of Object.keys(grid)) {
    if (Object.hasOwn(options, one)) refuse(["grid", one], "expected an option that is not among options as well");
  }
  const count = Object.values(grid).reduce((product, values) => product * values.length, 1);
  if (count > POINTS_MAX) refuse(["grid"], `expected ${POINTS_MAX} combinations at most, got ${count}`);
  const fixed = Object.entries(options).flatMap(([option, given]) => flagsOf(option, given));
  const argument = trace === undefined ? [] : [trace];
  const points = combinations(Object.entries(grid)).map((axes, index) => {
    const own = Object.entries(axes).flatMap(([option, given]) => flagsOf(option, given));
    return { index, axes, argv: [...argument, ...fixed, ...own] };
  });
  return { command, digest: digestOf([command, points.map(({ axes, argv }) => [axes, argv])]), points };
}

/** `--option=value` each, so that a value may begin with a dash. */
function flagsOf(option: string, given: Value): string[] {
  const values = typeof given === "object" ? given : [given];
  return values.flatMap((value) => {
    if (value === false) return [];
    return value === true ? [`--${option}`] : [`--${option}=${value}`];
  });
}

function combinations(axes: readonly (readonly [string, readonly Value[]])[]): Readonly<Record<string, Value>>[] {
  return axes.reduce<Readonly<Record<string, Value>>[]>(
    (all, [option, values]) => all.flatMap((one) => values.map((value) => ({ ...one, [option]: value }))),
    [{}],
  );
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
}
