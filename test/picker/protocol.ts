import { join } from "node:path";
import type { ServiceDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

const FOLDER = join(import.meta.dirname, "proto");
const OPTIONS = { keepCase: false, longs: Number, enums: Number, bytes: Buffer, defaults: false, oneofs: false };

/** The service through which Envoy asks. */
export const EXTERNAL_PROCESSOR = "envoy.service.ext_proc.v3.ExternalProcessor";
export const HEALTH = "grpc.health.v1.Health";

/** The definition of a service in the folder proto, for a server or a client. */
export function serviceOf(file: string, name: string): ServiceDefinition {
  const found = loadSync(join(FOLDER, file), OPTIONS)[name];
  if (found === undefined || "format" in found) throw new Error(`${file} has no service ${name}`);
  return found;
}
