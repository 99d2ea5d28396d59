import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const paths = () =>
  z
    .array(
      z
        .string()
        .regex(/^(?!\/gnomon|\/metrics|\/healthz|\/readyz)(?:\/[\w-][\w.-]*){1,8}$/)
        .max(256)
        .meta({ expected: "a path such as /v1/images/generations" }),
    )
    .max(64)
    .default([]);

/** What passes to the engines beside OpenAI's, Anthropic's and vLLM's routes of inference. */
export const routes = z.strictObject({
  extra: paths().describe("Further inference paths (POST), whose requests each go to one engine."),
  administration: paths().describe(
    "Paths of engines' administration, such as /v1/load_lora_adapter or /sleep; a call (GET or POST) on the administrative port needs the admin token and goes to all ready engines.",
  ),
  administrationMillisMax: millis(1000, MILLIS_PER_DAY).default(300_000).describe("Longest wait for all of them."),
});
