import * as z from "zod";
import { STAGE_SETTINGS, type StageLimits } from "#core/stages.ts";
import type { StageSetting } from "#core/path/stage-kind.ts";
import { millis } from "./schema-value.ts";

type Shape = {
  readonly [K in keyof StageLimits]-?: undefined extends StageLimits[K]
    ? z.ZodOptional<z.ZodNumber>
    : z.ZodDefault<z.ZodNumber>;
};

/** Keys of `limits` that stages of a request's path bring. */
export const stageLimits = Object.fromEntries(
  STAGE_SETTINGS.map(([key, setting]) => [key, schemaOf(setting)]),
) as unknown as Shape;

function schemaOf({ usual, meaning, ...setting }: StageSetting): z.ZodType<number | undefined> {
  const value = numberOf(setting);
  return (usual === undefined ? value.optional() : value.default(usual)).describe(meaning);
}

function numberOf({ kind, min, max }: Pick<StageSetting, "kind" | "min" | "max">): z.ZodNumber {
  switch (kind) {
    case "millis":
      return millis(min, max);
    case "share":
      return z.number().min(min).max(max);
    case "count":
      return z.int().min(min).max(max);
  }
}
