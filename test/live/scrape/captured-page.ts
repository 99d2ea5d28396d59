import { readFileSync } from "node:fs";

const GOLDEN = new URL("../../golden/", import.meta.url);

/** Body of a captured metrics page of vLLM 0.32.0. */
export function capturedPage(name: string): string {
  const bytes = readFileSync(new URL(`vllm-http/${name}.http`, GOLDEN), "utf8");
  return bytes.slice(bytes.indexOf("\r\n\r\n") + 4);
}

/** A page made by hand. */
export function writtenPage(name: string): string {
  return readFileSync(new URL(`metrics/${name}.txt`, GOLDEN), "utf8");
}

export const CAPTURED_PAGES = [
  "metrics_cold",
  "metrics_cold_default",
  "metrics_after_traffic",
  "metrics_waiting",
  "metrics_after_preemptions",
  "metrics_after_503",
  "metrics_lora_idle",
  "metrics_lora_running",
  "metrics_dp2",
  "metrics_dp2_running",
] as const;
