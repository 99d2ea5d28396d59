import { spawn, type ChildProcessByStdio } from "node:child_process";
import { type AddressInfo, type Server, createServer } from "node:net";
import type { Readable } from "node:stream";
import { join } from "node:path";
import type { TestContext } from "node:test";

/** Where status pages and administration are, in what a gateway prints once it is ready. */
export const ADMIN = /"adminUrl":"(http:[^"]+)"/;
const ROOT = join(import.meta.dirname, "../..");

/** A gnomon that runs in a process of its own, as a person starts it. */
export interface CommandLine {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  stdout(): string;
  stderr(): string;
  /** Resolves once stdout matches; rejects when the process ends before. */
  said(pattern: RegExp): Promise<RegExpMatchArray>;
  readonly exit: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/**
 * Starts gnomon and kills what is left of it when the test is over. A gateway is ready without a warm-up, which takes 1
 * to 2 s of CPU; a test that is to have one has the variable of `listen.warmUpMillis` undefined.
 */
export function gnomon(t: TestContext, args: readonly string[], environment: NodeJS.ProcessEnv = {}): CommandLine {
  const env = { ...ownEnvironment(), GNOMON_LISTEN_WARM_UP_MILLIS: "0", ...environment };
  return started(t, [process.execPath, join(ROOT, "bin/gnomon.js"), ...args], { env });
}

/** This process's variables without those that would change how a gnomon runs. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("GNOMON_") && name !== "NODE_OPTIONS");
  return Object.fromEntries(own);
}

/** Starts a program and kills what is left of it when the test is over. */
export function started(
  t: TestContext,
  [program = "", ...args]: readonly string[],
  options: { readonly env: NodeJS.ProcessEnv; readonly cwd?: string },
): CommandLine {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exit: CommandLine["exit"] = new Promise((resolve) =>
    child.once("close", (code, signal) => resolve({ code, signal })),
  );
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(stdout);
          if (match !== null) resolve(match);
        };
        look();
        child.stdout.on("data", look);
        child.once("close", () => reject(new Error(`it ended and said: ${stdout}${stderr}`)));
      }),
    exit,
  };
}

/** A port of the loopback address that somebody listens on. */
export async function takenPort(): Promise<{ server: Server; port: number }> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}
