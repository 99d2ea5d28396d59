import type { Config } from "#config/schema.ts";
import type { PickerTls } from "#picker/picker-credentials.ts";
import type { Picker } from "#picker/picker-server.ts";
import { TlsFiles } from "./clients/tls-files.ts";
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
  const held = await tlsOf(picker, stack.faults.report);
  const { startPicker } = await import("#picker/picker-server.ts");
  const options = {
    gateway: stack.gateway.parts,
    routes: stack.gateway.routes,
    administration: routes.administration,
    host: listen.host,
    port,
    healthPort: picker.healthPort,
    tls: held.tls,
    fallbacksMax: picker.fallbacks,
    ready: () => stack.readiness.waitsFor().length === 0,
  };
  const started = await startPicker(options).catch((error: unknown) => {
    throw refusedBySystem(`cannot listen on ${listen.host}:${port}`, error, "choose another with --picker-port");
  });
  return {
    ...started,
    stop: async (graceMillis, noticeMillis) => {
      await held.stop();
      await started.stop(graceMillis, noticeMillis);
    },
  };
}

interface HeldTls {
  readonly tls: PickerTls | undefined;
  stop(): Promise<void>;
}

/** Own files, which are watched; without any a certificate of the picker's own. */
async function tlsOf(
  { plaintext, certFile, keyFile }: Config["picker"],
  report: LiveStack["faults"]["report"],
): Promise<HeldTls> {
  const stop = async (): Promise<void> => {};
  if (plaintext) return { tls: undefined, stop };
  if (certFile === undefined || keyFile === undefined) {
    const { selfSigned } = await import("#picker/self-signed.ts");
    const { cert, key } = selfSigned("gnomon", new Date());
    return { tls: { context: { cert, key }, listen: () => {} }, stop };
  }
  const cert = { certKey: "certFile", certFile, keyKey: "keyFile", keyFile };
  const files = new TlsFiles({ section: "picker", cert, minVersion: "TLSv1.2", watchMillis: WATCH_MILLIS, report });
  return { tls: files, stop: () => files.stop() };
}

/** Between two looks at the files. */
const WATCH_MILLIS = 1_000;
