import { readSpecText } from "./synthetic-spec.ts";

/** Of a YAML file: BLIS's specifications have their version, and their clients or what stands for them. */
export async function specFormat(path: string): Promise<"blis-spec" | "synthetic"> {
  const text = await readSpecText(path);
  return /^version\s*:/m.test(text) && /^(clients|inference_perf)\s*:/m.test(text) ? "blis-spec" : "synthetic";
}
