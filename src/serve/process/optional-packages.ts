import { readFileSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import type { Config } from "#config/schema.ts";

/** What spans need; the packages of this file are those that npm does not install by itself. */
const TRACING = [
  "@opentelemetry/api",
  "@opentelemetry/core",
  "@opentelemetry/exporter-trace-otlp-http",
  "@opentelemetry/resources",
  "@opentelemetry/sdk-trace",
];

/** Throws a ConfigError that names each key whose packages are not installed, with the command that installs them. */
export function requirePackages(config: Config): void {
  const lines = needs(config).flatMap(({ key, names, otherwise = "" }) => {
    const missing = names.filter((name) => !isInstalled(name));
    return missing.length === 0 ? [] : [`${key}: ${installLine(missing)}${otherwise}`];
  });
  if (lines.length > 0) throw new ConfigError(lines);
}

interface Need {
  readonly key: string;
  readonly names: readonly string[];
  readonly otherwise?: string;
}

function needs({ tokenizer, kvEvents, tracing, emulate }: Config): Need[] {
  const named = Object.entries(tokenizer.models).map(
    ([model, { kind }]) => [`tokenizer.models[${JSON.stringify(model)}].kind`, kind] as const,
  );
  const kinds = [["tokenizer.kind", tokenizer.kind] as const, ...named];
  const followed = kvEvents.mode === "on" || kinds.some(([, kind]) => kind === "huggingface" || kind === "vllm");
  return [
    ...kinds.flatMap(([key, kind]) => {
      if (kind === "huggingface") return [{ key, names: ["tokenizers"] }];
      return kind === "tiktoken" ? [{ key, names: ["tiktoken"] }] : [];
    }),
    ...(followed && kvEvents.mode !== "off"
      ? [{ key: "kvEvents.mode", names: ["zeromq"], otherwise: ", or set it to off" }]
      : []),
    ...(emulate.tokenizerFile === undefined ? [] : [{ key: "emulate.tokenizerFile", names: ["tokenizers"] }]),
    ...(emulate.kvEvents ? [{ key: "emulate.kvEvents", names: ["zeromq"] }] : []),
    ...(tracing.url === undefined ? [] : [{ key: "tracing.url", names: TRACING }]),
  ];
}

function installLine(names: readonly string[]): string {
  const { peerDependencies } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    readonly peerDependencies: Readonly<Record<string, string>>;
  };
  const wanted = names.map((name) => `${name}@${peerDependencies[name] ?? "latest"}`).join(" ");
  return `needs a package that is not installed; npm install ${wanted}`;
}

function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name);
    return true;
  } catch {
    return false;
  }
}
