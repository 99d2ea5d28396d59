import type { PickerTls } from "#picker/grpc/grpc-server.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import { TlsFiles } from "./tls-files.ts";

interface TlsKeys {
  readonly plaintext: boolean;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

interface HeldTls {
  readonly tls: PickerTls | undefined;
  stop(): Promise<void>;
}

/** Own files, which are watched; without any a certificate of the picker's own. */
export async function grpcTls(
  section: string,
  { plaintext, certFile, keyFile }: TlsKeys,
  report: FaultLog["report"],
): Promise<HeldTls> {
  const stop = async (): Promise<void> => {};
  if (plaintext) return { tls: undefined, stop };
  if (certFile === undefined || keyFile === undefined) {
    const { selfSigned } = await import("#picker/self-signed.ts");
    const { cert, key } = selfSigned("gnomon", new Date());
    return { tls: { context: { cert, key }, listen: () => {} }, stop };
  }
  const cert = { certKey: "certFile", certFile, keyKey: "keyFile", keyFile };
  const files = new TlsFiles({ section, cert, minVersion: "TLSv1.2", watchMillis: WATCH_MILLIS, report });
  return { tls: files, stop: () => files.stop() };
}

/** Between two looks at the files. */
const WATCH_MILLIS = 1_000;
