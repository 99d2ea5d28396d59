import type { TestContext } from "node:test";
import type { Command } from "commander";
import { createProgram, run } from "../../src/cli/program.ts";

export interface Said {
  readonly code: number;
  readonly out: string;
  /** Notes that the command wrote beside its answer. */
  readonly notes: string;
  /** What was complained of. */
  readonly said: string;
}

/** Runs a command line in this process. */
export async function inProcess(t: TestContext, commands: readonly Command[], argv: readonly string[]): Promise<Said> {
  const texts = { stdout: "", stderr: "" };
  const mocks = (["stdout", "stderr"] as const).map((name) => {
    const original = process[name].write.bind(process[name]);
    return t.mock.method(process[name], "write", (text: string | Uint8Array) => {
      // The runner's own reports pass through as bytes.
      if (typeof text !== "string") return original(text);
      texts[name] += text;
      return true;
    });
  });
  const complaints: string[] = [];
  const code = await run(createProgram("0", commands), argv, (line) => complaints.push(line));
  for (const mock of mocks) mock.mock.restore();
  return { code, out: texts.stdout, notes: texts.stderr, said: complaints.join("\n") };
}
