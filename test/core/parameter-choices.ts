import type { ParameterDescription, ParameterTable } from "#core/plugin/parameter.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";

/** Parameters to try a plugin with: its defaults, each value of each choice, and each number at its bounds and between. */
export function parameterChoices(table: ParameterTable): Record<string, ParameterValue>[] {
  const single = Object.entries(table).flatMap(([key, described]) =>
    valuesOf(described)
      .filter((value) => value !== described.default)
      .map((value) => ({ [key]: value })),
  );
  return [{}, ...single];
}

function valuesOf(described: ParameterDescription): ParameterValue[] {
  switch (described.type) {
    case "choice":
      return [...described.values];
    case "boolean":
      return [true, false];
    case "string":
      return ["x"];
    case "number":
    case "integer": {
      const low = described.min ?? described.default / 4;
      const high = described.max ?? described.default * 4 + 1;
      const middle = (low + high) / 2;
      return [low, described.type === "integer" ? Math.floor(middle) : middle, high];
    }
  }
}
