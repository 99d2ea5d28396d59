import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { kept } from "../children.ts";

const PORTS = [18_461, 18_462] as const;
const MAIN = join(import.meta.dirname, "../../src/main.ts");
const ENGINE = join(import.meta.dirname, "../../config/engines/emulated-default.yaml");
const DROP_SHARE = 0.01;
const RESET_MILLIS = 2_000;

/** Two emulated engines with room for 300 blocks of 32 tokens, a process each, that publish KV events. */
export class EmulatedPair {
  readonly urls: readonly string[] = PORTS.map((port) => `http://127.0.0.1:${port}`);
  readonly #flags: readonly string[];
  readonly #engines: ChildProcess[];

  constructor(flags: readonly string[], engines: ChildProcess[]) {
    this.#flags = flags;
    this.#engines = engines;
  }

  static async start(tokenizer: string, model: string): Promise<EmulatedPair> {
    const engine = join(mkdtempSync(join(tmpdir(), "gnomon-kv-engine-")), "small.yaml");
    const text = readFileSync(ENGINE, "utf8").replace(/^(kvBlocks|blockTokens|modelTokensMax):.*\n/gm, "");
    writeFileSync(engine, `${text}\nkvBlocks: 300\nblockTokens: 32\nmodelTokensMax: 8192\n`);
    const files = [
      "--tokenizer-file",
      join(tokenizer, "tokenizer.json"),
      "--chat-template",
      join(tokenizer, "tokenizer_config.json"),
    ];
    const flags = ["--model", model, "--engine", engine, "--set", "emulate.kvEvents=true", ...files];
    return new EmulatedPair(flags, await Promise.all(PORTS.map((port) => startEngine(port, flags))));
  }

  /** Does what the fault's name states, over a run of so many seconds. */
  async fail(fault: string, seconds: number): Promise<void> {
    const third = (1_000 * seconds) / 3;
    if (fault === "drop" || fault === "refuse") {
      await this.#order({ dropShare: DROP_SHARE, replayRefused: fault === "refuse" });
    } else if (fault === "reset") {
      for (let left = 3 * third; left > 0; left -= RESET_MILLIS) {
        await pause(RESET_MILLIS);
        for (const url of this.urls) await fetch(`${url}/reset_prefix_cache`, { method: "POST" });
      }
    } else if (fault === "pause") {
      await pause(third);
      await this.#order({ paused: true });
      await pause(third);
      await this.#order({ paused: false });
    } else if (fault === "restart") {
      await pause(third);
      this.#engines[0]!.kill("SIGKILL");
      await pause(500);
      this.#engines[0] = await startEngine(PORTS[0], this.#flags);
    }
  }

  async #order(body: object): Promise<void> {
    for (const url of this.urls) {
      const headers = { "content-type": "application/json" };
      await fetch(`${url}/emulator/kv-events`, { method: "POST", headers, body: JSON.stringify(body) });
    }
  }
}

async function startEngine(port: number, flags: readonly string[]): Promise<ChildProcess> {
  const args = [MAIN, "emulate", "--count", "1", "--port-base", String(port), ...flags];
  const engine = kept(spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] }));
  await new Promise<void>((resolve, reject) => {
    engine.once("exit", () => reject(new Error("an emulated engine ended")));
    engine.stdout.once("data", () => resolve());
  });
  engine.removeAllListeners("exit");
  return engine;
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
