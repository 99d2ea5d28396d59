import { readFileSync } from "node:fs";
import { clusterCase, type ClusterForm } from "./cluster-form.ts";
import type { GoldenCase } from "./golden-case.ts";
import { singleEngineCase, type SingleEngineForm } from "./single-engine-form.ts";

/** A case that could not be brought to the simulator's terms, and why. */
export interface UnreadableCase {
  readonly name: string;
  readonly problem: string;
}

/** The cases of a file: a list of single engines, or one cluster; none in a file with recorded draws. */
export function readCases(path: string): (GoldenCase | UnreadableCase)[] {
  const content = JSON.parse(readFileSync(path, "utf8")) as unknown;
  if (Array.isArray(content)) {
    return content.map((form, number) =>
      attempt(`engine ${number + 1}`, () => singleEngineCase(form as SingleEngineForm, number)),
    );
  }
  const form = content as ClusterForm;
  if (form.config === undefined) {
    if (Reflect.get(form, "int31") !== undefined) return [];
    return [
      { name: path, problem: "expected a list of single engines, or a cluster with config, requests and expected" },
    ];
  }
  return [attempt(form.name, () => clusterCase(form))];
}

function attempt(name: string, read: () => GoldenCase): GoldenCase | UnreadableCase {
  try {
    return read();
  } catch (error) {
    return { name, problem: error instanceof Error ? error.message : String(error) };
  }
}
