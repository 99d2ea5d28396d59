import * as z from "zod";

const PORT_MAX = 65_535;

/** A port on which a proxy is served over gRPC. */
export function grpcPort() {
  return z.int().min(0).max(PORT_MAX).optional();
}

/** How such a port is encrypted. */
export const GRPC_TLS = {
  plaintext: z
    .boolean()
    .default(false)
    .describe("true serves the port in plain text, where its proxy is set to that. false: TLS."),
  certFile: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Certificate (PEM) of this port; a change takes effect at once. Unset: it signs its own, which gateways accept since they do not ask who answers.",
    ),
  keyFile: z.string().min(1).optional().describe("Its private key (PEM)."),
};

interface GrpcTls {
  readonly plaintext: boolean;
  readonly certFile?: string | undefined;
  readonly keyFile?: string | undefined;
}

export function isKeyPair({ certFile, keyFile }: GrpcTls): boolean {
  return (certFile === undefined) === (keyFile === undefined);
}
export const KEY_PAIR = { path: ["keyFile"], message: "certFile and keyFile together" };

export function isOneWay({ plaintext, certFile }: GrpcTls): boolean {
  return !plaintext || certFile === undefined;
}
export const ONE_WAY = { path: ["plaintext"], message: "false, or no certFile" };
