import { readFileSync, readdirSync } from "node:fs";
import { engineDefaults } from "#engine/config.ts";
import { startEmulator, type Emulator, type EmulatorOptions } from "#emulator/server.ts";

const DIRECTORY = new URL("../golden/vllm-http/", import.meta.url);

/** A captured request of one of the real servers, by the port that it was sent to. */
export interface Capture {
  readonly name: string;
  readonly server: string;
  readonly request: Buffer;
  readonly response: Buffer;
}

/** Every captured pair of request and response. */
export function readCaptures(): readonly Capture[] {
  return readdirSync(DIRECTORY)
    .filter((file) => file.endsWith(".req.http"))
    .sort()
    .map((file) => {
      const name = file.slice(0, -".req.http".length);
      const request = readFileSync(new URL(file, DIRECTORY));
      const server = /Host: 127\.0\.0\.1:(\d+)/.exec(request.toString("latin1"))?.[1] ?? "";
      return { name, server, request, response: readCapture(`${name}.http`) };
    });
}

export function readCapture(file: string): Buffer {
  return readFileSync(new URL(file, DIRECTORY));
}

const QUICK = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
const COMMON = {
  host: "127.0.0.1",
  port: 0,
  model: "tiny",
  timeScale: 20,
  seed: 1,
  naturalTokensMean: 100_000,
  enableAutoToolChoice: false,
};
const engine = engineDefaults({ blockTokens: 32, kvBlocks: 2_048, stepTime: QUICK });

/** The emulator's options for each captured server, by port. */
const SERVERS: Readonly<Record<string, EmulatorOptions>> = {
  "18101": { ...COMMON, engine, serverLoadTracking: true, enableRequestIdHeaders: true },
  "18102": {
    ...COMMON,
    engine: { ...engine, kvBlocks: 49, sequencesMax: 8, modelTokensMax: 1_024, scheduler: "priority-fcfs" },
    apiKey: "sk-test",
    queuedRequestsMax: 24,
    shutdownTimeoutSeconds: 20,
  },
  "18107": {
    ...COMMON,
    engine,
    adapters: [{ name: "adapter-a", path: "./lora1" }],
    queuedTokensMax: 3_000,
    forceIncludeUsage: true,
  },
  "18109": { ...COMMON, engine },
};

/** Starts the emulator as the captured server on that port was configured. */
export function startAs(server: string, changes: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  const options = SERVERS[server];
  if (options === undefined) throw new Error(`no emulator stands for the server on port ${server}`);
  return startEmulator({ ...options, ...changes });
}
