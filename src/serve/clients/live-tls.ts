import type { Config } from "#config/schema.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { EngineConnections } from "#live/tls/connections.ts";
import type { ServerTls } from "#live/gateway/secure-server.ts";
import type { Certificates } from "./certificates.ts";
import { TlsFiles, type TlsNotes } from "./tls-files.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

export interface LiveTls {
  /** Undefined where clients speak plain HTTP. */
  readonly listenTls: ServerTls | undefined;
  readonly connections: EngineConnections;
  stop(): Promise<void>;
}

/** TLS towards clients and engines; its files are followed. Throws ConfigError. */
export function liveTls({ listen, engineTls }: Config, notes: TlsNotes): LiveTls {
  const files: TlsFiles[] = [];
  let listenTls: ServerTls | undefined;
  if (listen.tls.certFile !== undefined && listen.tls.keyFile !== undefined) {
    const { certFile, keyFile, clientCaFile, minVersion, watchMillis } = listen.tls;
    const ca = clientCaFile === undefined ? undefined : { caKey: "clientCaFile", caFile: clientCaFile };
    const cert = { certKey: "certFile", certFile, keyKey: "keyFile", keyFile };
    const own = new TlsFiles({ section: "listen.tls", cert, ...(ca && { ca }), minVersion, watchMillis, ...notes });
    files.push(own);
    listenTls = { context: own.context, wantsClientCert: ca !== undefined, listen: own.listen };
  }
  const { caFile, certFile, keyFile, verify, minVersion, watchMillis } = engineTls;
  const ca = caFile === undefined ? undefined : { caKey: "caFile", caFile };
  const hasCert = certFile !== undefined && keyFile !== undefined;
  const cert = hasCert ? { certKey: "certFile", certFile, keyKey: "keyFile", keyFile } : undefined;
  const section = "engineTls";
  const engines = new TlsFiles({
    section,
    ...(cert && { cert }),
    ...(ca && { ca }),
    minVersion,
    watchMillis,
    ...notes,
  });
  files.push(engines);
  const connections = new EngineConnections({ ...engines.context, rejectUnauthorized: verify });
  engines.listen((context) => connections.replace({ ...context, rejectUnauthorized: verify }));
  return {
    listenTls,
    connections,
    stop: async () => {
      await Promise.all(files.map((file) => file.stop()));
    },
  };
}

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly logs: { readonly faults: FaultLog };
  readonly certificates: Certificates;
}

export const tlsPart = part({
  name: "tls",
  needs: ["plan", "logs", "certificates"],
  start: ({ plan, logs, certificates }: Needed) => liveTls(plan.config, { report: logs.faults.report, certificates }),
  stop: (tls) => tls.stop(),
});
