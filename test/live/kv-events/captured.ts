import { readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "../../golden/vllm-kv-events");

/** Messages as a publisher of vLLM sent them. */
export function captured(
  name: string,
): { readonly topic: string; readonly number: number; readonly payload: Buffer }[] {
  const lines = readFileSync(join(FOLDER, `${name}.hex`), "utf8")
    .trim()
    .split("\n");
  return lines.map((line) => {
    const [topic = "", number = "", payload = ""] = line.split(" ");
    const bytes = Buffer.from(topic === "-" ? "" : topic, "hex");
    return { topic: bytes.toString(), number: Number(`0x${number}`), payload: Buffer.from(payload, "hex") };
  });
}
