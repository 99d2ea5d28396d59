import { randomInt } from "node:crypto";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { Fields } from "../base/fields.ts";

/** Label with the port at which an engine that computes prompts is met by the others. */
const BOOTSTRAP_PORT_LABEL = "gnomon/bootstrap-port";
/** SGLang's. */
const BOOTSTRAP_PORT = 8998;
/** Rooms are numbers that JSON keeps exact. */
const ROOMS = 2 ** 47;

/**
 * By what two engines that get a request at once find each other, as SGLang's do: where the first one waits, and a
 * room.
 */
export function bootstrapFields({ url, labels }: Pick<EndpointEntry, "url" | "labels">): Fields {
  const port = Number(labels?.[BOOTSTRAP_PORT_LABEL] ?? BOOTSTRAP_PORT);
  return {
    bootstrap_host: new URL(url).hostname,
    bootstrap_port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : BOOTSTRAP_PORT,
    bootstrap_room: randomInt(ROOMS),
  };
}
