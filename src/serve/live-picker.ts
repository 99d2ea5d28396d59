import { readFileSync } from "node:fs";
import type { Config } from "#config/schema.ts";
import type { Picker } from "#picker/picker-server.ts";
import { CommandFailure } from "./process/command-failure.ts";
import type { LiveStack } from "./live-stack.ts";
import { refusedBySystem } from "./process/system-error.ts";

/** Begins to answer a proxy's questions beside the gateway, with the same router; undefined where none is configured. */
export async function startLivePicker(
  stack: LiveStack,
  { listen, picker, routes }: Config,
): Promise<Picker | undefined> {
  const { port } = picker;
  if (port === undefined) return undefined;
  // Its libraries are loaded where they are used.
  const { startPicker } = await import("#picker/picker-server.ts");
  const options = {
    context: stack.gateway.parts,
    routes: stack.gateway.routes,
    administration: routes.administration,
    host: listen.host,
    port,
    healthPort: picker.healthPort,
    tls: tlsOf(picker),
    fallbacksMax: picker.fallbacks,
    ready: () => stack.readiness.waitsFor().length === 0,
  };
  return startPicker(options).catch((error: unknown) => {
    throw refusedBySystem(`cannot listen on ${listen.host}:${port}`, error, "choose another with --picker-port");
  });
}

function tlsOf({ certFile, keyFile }: Config["picker"]): { cert: Buffer; key: Buffer } | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined;
  return { cert: fileOf("certFile", certFile), key: fileOf("keyFile", keyFile) };
}

function fileOf(key: string, file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw new CommandFailure(`picker.${key}: expected a PEM file that can be read, got ${file}`);
  }
}
