import type { TestContext } from "node:test";
import { type CommandLine, gnomon } from "../../cli/command-line.ts";

/** An emulated engine in a process of its own, which a test can stop and let go on. */
export interface EngineProcess {
  readonly url: string;
  readonly process: CommandLine;
  /** Accepts connections and answers nothing until it is let go on. */
  hang(): void;
  goOn(): void;
}

export async function startEngine(t: TestContext, ...more: string[]): Promise<EngineProcess> {
  const started = gnomon(t, ["emulate", "--count", "1", "--port-base", "0", ...more]);
  const [, url = ""] = await started.said(/emulates \S+ at (\S+)/);
  return {
    url,
    process: started,
    hang: () => void started.child.kill("SIGSTOP"),
    goOn: () => void started.child.kill("SIGCONT"),
  };
}
