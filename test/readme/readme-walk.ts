import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { commandsOf, printedBlocks } from "../printed-commands.ts";

const ROOT = resolve(import.meta.dirname, "../..");
export const README = readFileSync(join(ROOT, "README.md"), "utf8");
const READY = /gnomon is ready/;
const STOPPED_MILLIS_MAX = 20_000;
const [PORTS_FROM, PORTS_BELOW] = [20_000, 32_000];

/** A command of README.md. */
export interface Step {
  readonly heading: string;
  readonly command: string;
  /** It serves until it is ended. */
  readonly serves: boolean;
}

export interface Walked {
  readonly step: Step;
  readonly code: number | null;
  readonly output: string;
  readonly millis: number;
}

/** Why commands that are printed are not walked: they name what only their reader has, or take the place of others. */
const NOT_WALKED: readonly (readonly [part: string, why: string])[] = [
  ["http://vllm-0:8000", "engines of the reader"],
  ["npm ci && npm test", "the tests themselves"],
];

/** The commands of README.md in order, those of text among blocks too. */
export function stepsOfReadme(): Step[] {
  const steps: Step[] = [];
  for (const { heading, language, text } of printedBlocks(README)) {
    if (language !== "sh") continue;
    for (const command of commandsOf(text)) {
      if (NOT_WALKED.some(([part]) => command.includes(part))) continue;
      steps.push({ heading, command, serves: /\bnpm start\b/.test(command) });
    }
    if (text.includes("\nask 'How")) steps.push({ heading, command: explained(), serves: false });
  }
  return steps;
}

/** The inline command that prints the scores behind a decision. */
function explained(): string {
  return /^`(curl [^`]+explain --decision -)`/m.exec(README)![1]!;
}

/** Servers that README.md starts while it has not asked to end the one before; those that its reader's engines need aside. */
export function serversWithoutAnEnd(): string[] {
  const parts = README.split(/^(.*\bnpm start\b.*)$/m);
  const late: string[] = [];
  let open = false;
  for (const [i, part] of parts.entries()) {
    if (part.includes("Ctrl-C")) open = false;
    if (i % 2 === 0 || NOT_WALKED.some(([words]) => part.includes(words))) continue;
    if (open) late.push(part);
    open = true;
  }
  return late;
}

export interface WalkOptions {
  /** Folder of the program `node` that the reader has; undefined: this one's. */
  readonly nodeFolder?: string;
  /** `npm ci` is run; else what is installed here stands for it. */
  readonly installs: boolean;
  readonly steps: readonly Step[];
  readonly walked: (one: Walked) => void;
}

/**
 * Walks through commands as a reader would: in a copy of the project, one shell for all, servers in another one, each ended as by
 * Ctrl-C before the next one starts. Ports are others than printed, so that a gateway here is not disturbed.
 */
export async function walk(options: WalkOptions): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-readme-"));
  const walker = new Walker(folder, options, await freePorts());
  try {
    copyProject(folder, options.installs);
    for (const step of options.steps) options.walked(await walker.step(step));
  } finally {
    await walker.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

class Walker {
  readonly #folder: string;
  readonly #options: WalkOptions;
  readonly #port: number;
  /** Lines that later commands need: variables and functions. */
  #kept = "";
  #server: ChildProcess | undefined;

  constructor(folder: string, options: WalkOptions, port: number) {
    this.#folder = folder;
    this.#options = options;
    this.#port = port;
  }

  async step(step: Step): Promise<Walked> {
    const from = performance.now();
    const [, variable] = /^(?:export )?(\w+)=/.exec(step.command) ?? [];
    const { code, output } = await this.#outcome(step, variable);
    // As it was evaluated once: a token that is drawn is the same for all that follow.
    if (variable !== undefined) this.#kept += output;
    if (/^\w+\(\) \{/.test(step.command)) this.#kept += `${step.command}\n`;
    return { step, code, output, millis: performance.now() - from };
  }

  #outcome({ command, serves }: Step, variable: string | undefined): Promise<{ code: number | null; output: string }> {
    if (serves) return this.#serve(command);
    return this.#run(variable === undefined ? command : `${command}\ndeclare -p ${variable}`);
  }

  /** Ends the server as Ctrl-C does. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    if (server.exitCode !== null) return;
    const ended = new Promise((done) => server.once("close", done));
    signal(server, "SIGINT");
    const late = setTimeout(() => signal(server, "SIGKILL"), STOPPED_MILLIS_MAX);
    await ended;
    clearTimeout(late);
  }

  async #serve(command: string): Promise<{ code: number | null; output: string }> {
    await this.stop();
    const server = this.#spawn(command);
    this.#server = server;
    let output = "";
    return new Promise((resolve) => {
      const read = (text: string): void => {
        output += text;
        if (READY.test(output)) resolve({ code: 0, output });
      };
      server.stdout!.setEncoding("utf8").on("data", read);
      server.stderr!.setEncoding("utf8").on("data", read);
      server.once("close", (code) => resolve({ code: code ?? 1, output }));
    });
  }

  async #run(command: string): Promise<{ code: number | null; output: string }> {
    const child = this.#spawn(command);
    let output = "";
    child.stdout!.setEncoding("utf8").on("data", (text: string) => (output += text));
    child.stderr!.setEncoding("utf8").on("data", (text: string) => (output += text));
    const code = await new Promise<number | null>((done) => child.once("close", done));
    return { code, output };
  }

  #spawn(command: string): ChildProcess {
    const placed = `${this.#kept}${this.#options.installs ? command : command.replace(/^npm ci [^&]*&& /, "")}`
      .replaceAll("127.0.0.1:8080", `127.0.0.1:${this.#port}`)
      .replaceAll("127.0.0.1:8081", `127.0.0.1:${this.#port + 1}`)
      .replaceAll(
        /gnomon (?=rollout (?:start|status|promote)|policy)(\w+ \w+)/g,
        `gnomon $1 --url http://127.0.0.1:${this.#port + 1}`,
      );
    const { PATH = "", HOME } = process.env;
    const path = this.#options.nodeFolder === undefined ? PATH : `${this.#options.nodeFolder}:${PATH}`;
    const env = { PATH: path, HOME, GNOMON_LISTEN_PORT: String(this.#port), NO_UPDATE_NOTIFIER: "1" };
    return spawn("bash", ["-c", placed], {
      cwd: this.#folder,
      env,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
  }
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    process.kill(-pid!, name);
  } catch {
    // It has ended meanwhile.
  }
}

/** The files of the project; where nothing is to be installed, with what is installed here. */
function copyProject(folder: string, installs: boolean): void {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(ROOT)) {
    if (name === "node_modules" ? installs : name === ".git" || name === "traces") continue;
    if (installs) cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    else symlinkSync(join(ROOT, name), join(folder, name));
  }
}

/**
 * The first of two neighbours that nobody listens on, below those that systems hand out by themselves: a walk takes minutes, and
 * needs them all the time.
 */
async function freePorts(): Promise<number> {
  for (;;) {
    const port = PORTS_FROM + 2 * Math.floor(Math.random() * (PORTS_BELOW - PORTS_FROM - 1) * 0.5);
    if ((await isFree(port)) && (await isFree(port + 1))) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
  });
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}
