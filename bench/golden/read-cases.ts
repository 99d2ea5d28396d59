import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { clusterCase, type ClusterForm } from "./cluster-form.ts";
import type { GoldenCase } from "./golden-case.ts";
import { singleEngineCase, type SingleEngineForm } from "./single-engine-form.ts";

/** A case that could not be brought to the simulator's terms, and why. */
export interface UnreadableCase {
  readonly name: string;
  readonly problem: string;
}

/** The cases of a file: a list of single engines, or one cluster. */
export function readCases(path: string): (GoldenCase | UnreadableCase)[] {
  const content = JSON.parse(readFileSync(path, "utf8")) as unknown;
  if (Array.isArray(content)) {
    return content.map((form, number) =>
      attempt(`engine ${number + 1}`, () => singleEngineCase(form as SingleEngineForm, number)),
    );
  }
  const form = content as ClusterForm;
  return [attempt(form.name, () => clusterCase(form))];
}

/** The draws for a seed beside the cases, or those that come with gnomon; empty where there are none. */
export function readDraws(casePath: string, seed: number): readonly number[] {
  const name = `tie_draws_seed${seed}.json`;
  const beside = join(dirname(casePath), name);
  const shipped = fileURLToPath(new URL(`../../test/golden/blis/${name}`, import.meta.url));
  const file = [beside, shipped].find((path) => existsSync(path));
  if (file === undefined) return [];
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly int31: readonly number[] }).int31;
}

function attempt(name: string, read: () => GoldenCase): GoldenCase | UnreadableCase {
  try {
    return read();
  } catch (error) {
    return { name, problem: error instanceof Error ? error.message : String(error) };
  }
}
