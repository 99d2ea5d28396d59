import { readFileSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { unknownWord } from "#config/problem.ts";
import { HARDWARE, type Hardware } from "#engine/hardware.ts";
import { type ModelConfig, readHuggingFaceModel } from "#engine/step-time/hugging-face.ts";

/** A board by its name, in capitals or not. Throws ConfigError. */
export function boardNamed(name: string): Hardware {
  const known = Object.keys(HARDWARE).find((one) => one.toLowerCase() === name.toLowerCase());
  if (known === undefined) throw new ConfigError([`--hardware: ${unknownWord("board", name, Object.keys(HARDWARE))}`]);
  return HARDWARE[known]!;
}

/** A Hugging Face config.json. Throws ConfigError with the key that is not simulated. */
export function modelIn(file: string): ModelConfig {
  const model = readHuggingFaceModel(readJson(file));
  if (typeof model === "string") throw new ConfigError([`--model-config: ${file}: ${model}`]);
  return model;
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ConfigError([`--model-config: expected a config.json, got ${file}: ${reason}`]);
  }
}
