import { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { requirePackages } from "#serve/process/optional-packages.ts";
import { givenConfig } from "../flag/given-config.ts";
import { type Given, type KeyFlag, addKeyFlags } from "../flag/key-flags.ts";

const KEY_FLAGS: readonly KeyFlag[] = [
  {
    flags: "--count <engines>",
    path: ["emulate", "count"],
    meaning: "engines to run, each a process with a port of its own",
  },
  {
    flags: "--prefill <engines>",
    path: ["emulate", "prefill"],
    meaning: "how many of them compute prompts for the others; all then have a KV connector",
    isRare: true,
  },
  { flags: "--host <address>", path: ["emulate", "host"], meaning: "address to listen on", isRare: true },
  {
    flags: "--port-base <port>",
    path: ["emulate", "portBase"],
    meaning: `port of the first engine; 0 takes free ports (default 9000)`,
  },
  { flags: "--model <name>", path: ["emulate", "model"], meaning: "model name to serve" },
  {
    flags: "--engine <file>",
    path: ["emulate", "engine"],
    meaning: "engine by name, or the path of an engine file; see config/engines",
  },
  { flags: "--time-scale <factor>", path: ["emulate", "timeScale"], meaning: "engine seconds per second" },
  {
    flags: "--output-tokens-mean <tokens>",
    path: ["emulate", "outputTokensMean"],
    meaning: "mean length of an answer that ends on its own",
    isRare: true,
  },
  { flags: "--tokenizer-file <file>", path: ["emulate", "tokenizerFile"], meaning: "tokenizer.json to count with" },
  {
    flags: "--chat-template <file>",
    path: ["emulate", "chatTemplate"],
    meaning: "tokenizer_config.json or template, beside --tokenizer-file",
    isRare: true,
  },
  { flags: "--seed <integer>", path: ["emulate", "seed"], meaning: "seed of ids and of fault draws", isRare: true },
];

const PORT_BASE = 9000;

export function emulateCommand(): Command {
  const command = new Command("emulate").description(
    "Run emulated vLLM engines: their API, metrics and timing, without a GPU.",
  );
  return addKeyFlags(command, KEY_FLAGS).action(async (given: Given) => {
    const { config, lines } = givenConfig(given, KEY_FLAGS, process.env);
    if (config === undefined || lines.length > 0) throw new ConfigError(lines);
    requirePackages(config);
    const { emulate } = config;
    const portBase = emulate.portBase === 0 && given["portBase"] === undefined ? PORT_BASE : emulate.portBase;
    const { runFleet } = await import("#serve/run-fleet.ts");
    await runFleet({ ...emulate, portBase });
  });
}
