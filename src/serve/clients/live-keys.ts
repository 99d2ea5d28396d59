import { ConfigError } from "#config/config-error.ts";
import { type KeyEntry, parseKeysFile } from "#config/keys-file.ts";
import type { Config } from "#config/schema.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { type ClientAuth, type ClientKey, ClientKeys, plainKeys } from "#live/http/client-auth.ts";
import { readConfiguredFile } from "../process/configured-file.ts";
import { secretOf } from "../process/secrets.ts";
import { WatchedFile } from "../process/watched-file.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

export interface LiveKeys {
  /** Undefined where everybody is let in. */
  readonly auth: ClientAuth | undefined;
  stop(): Promise<void>;
}

/** The keys that clients must send, from variable and file; the file is followed. Throws ConfigError. */
export function liveKeys(
  { clients }: Config,
  environment: Readonly<Record<string, string | undefined>>,
  report: FaultLog["report"],
): LiveKeys {
  const given = secretOf(clients.keysEnv, environment);
  const texts = (given ?? "").split(",").flatMap((key) => (key.trim() === "" ? [] : [key.trim()]));
  const plain = plainKeys(texts, clients.classes);
  const file = clients.keysFile;
  if (file === undefined) {
    const auth = given === undefined ? undefined : new ClientKeys(plain).of;
    return { auth, stop: () => Promise.resolve() };
  }
  const text = readConfiguredFile("clients.keysFile", file);
  const keys = new ClientKeys([...plain, ...keysOf(file, text)]);
  const refused = (detail: string): void =>
    report({ kind: "keys-refused", detail, done: "the keys of before go on being accepted" });
  const watched = new WatchedFile({
    file,
    watchMillis: clients.keysWatchMillis,
    text,
    changed: (next) => {
      try {
        keys.replace([...plain, ...keysOf(file, next)]);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        return refused(error.lines.join("; "));
      }
      report({
        kind: "keys-changed",
        detail: file,
        done: "they count from the next request on",
        figures: { keys: keys.size },
      });
    },
    unreadable: (reason) => refused(`${file}: ${reason}`),
  });
  watched.start();
  return { auth: keys.of, stop: () => watched.stop() };
}

function keysOf(file: string, text: string): ClientKey[] {
  return parseKeysFile(file, text).map(keyOf);
}

function keyOf({ name, sha256, tenant, class: sloClass, classes, expires }: KeyEntry): ClientKey {
  return {
    sha256: Buffer.from(sha256, "hex"),
    client: { tenant: tenant ?? name, key: "", sloClass, sloClasses: classes },
    expiresMillis: expires === undefined ? undefined : Date.parse(expires),
  };
}

export const keysPart = part({
  name: "keys",
  needs: ["plan", "environment", "logs"],
  start: ({ plan, environment, logs }: Pick<GatewayContext, "plan" | "environment"> & { readonly logs: Logs }) =>
    liveKeys(plan.config, environment, logs.faults.report),
  stop: (keys) => keys.stop(),
});

interface Logs {
  readonly faults: FaultLog;
}
