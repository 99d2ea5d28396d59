import type { PickerTls } from "#picker/grpc/grpc-server.ts";
import type { PickerServer } from "#picker/picker-server.ts";
import { refusedBySystem } from "../process/system-error.ts";
import { TlsFiles, type TlsNotes } from "./tls-files.ts";

interface TlsKeys {
  readonly plaintext: boolean;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

interface HeldTls {
  readonly tls: PickerTls | undefined;
  stop(): Promise<void>;
}

/** A port on which a proxy is served over gRPC, its section of the configuration, and the flag that sets it. */
interface GrpcAddress {
  readonly host: string;
  readonly port: number;
  readonly section: string;
  readonly keys: TlsKeys;
  readonly portFlag: string;
}

/** Starts a server with the certificate that its section states; throws what to change where the system refuses the address. */
export async function servedWithTls(
  { host, port, section, keys, portFlag }: GrpcAddress,
  notes: TlsNotes,
  start: (tls: PickerTls | undefined) => Promise<PickerServer>,
): Promise<{ readonly held: HeldTls; readonly server: PickerServer }> {
  const held = await grpcTls(section, keys, notes);
  const server = await start(held.tls).catch(async (error: unknown) => {
    await held.stop();
    throw refusedBySystem(`cannot listen on ${host}:${port}`, error, `choose another with ${portFlag}`);
  });
  return { held, server };
}

/** Own files, which are watched; without any a certificate of the picker's own. */
async function grpcTls(section: string, { plaintext, certFile, keyFile }: TlsKeys, notes: TlsNotes): Promise<HeldTls> {
  const stop = async (): Promise<void> => {};
  if (plaintext) return { tls: undefined, stop };
  if (certFile === undefined || keyFile === undefined) {
    const { selfSigned } = await import("#picker/self-signed.ts");
    const { cert, key } = selfSigned("gnomon", new Date());
    return { tls: { context: { cert, key }, listen: () => {} }, stop };
  }
  const cert = { certKey: "certFile", certFile, keyKey: "keyFile", keyFile };
  const files = new TlsFiles({ section, cert, minVersion: "TLSv1.2", watchMillis: WATCH_MILLIS, ...notes });
  return { tls: files, stop: () => files.stop() };
}

/** Between two looks at the files. */
const WATCH_MILLIS = 1_000;
