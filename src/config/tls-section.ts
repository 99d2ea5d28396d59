import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const file = () => z.string().min(1).max(4096);
const minVersion = () =>
  z.enum(["TLSv1.2", "TLSv1.3"]).default("TLSv1.2").describe("Oldest TLS version that is accepted.");
const watchMillis = () =>
  millis(20, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two checks of the files; a change takes effect at once.");

/** TLS towards clients. */
export const listenTls = z
  .strictObject({
    certFile: file()
      .optional()
      .describe("PEM file with the certificate and those between it and its root; unset: plain HTTP."),
    keyFile: file().optional().describe("PEM file with its private key, without a passphrase."),
    clientCaFile: file()
      .optional()
      .describe(
        "PEM file of root certificates; clients, including probes and scrapers, must present a certificate signed by one of them. Unset: no client certificates.",
      ),
    minVersion: minVersion(),
    watchMillis: watchMillis(),
  })
  .refine((value) => (value.certFile === undefined) === (value.keyFile === undefined), {
    path: ["keyFile"],
    message: "both certFile and keyFile, or neither",
  })
  .refine((value) => value.certFile !== undefined || value.clientCaFile === undefined, {
    path: ["clientCaFile"],
    message: "certFile and keyFile as well, or no clientCaFile",
  });

/** TLS towards engines whose URL is https. */
export const engineTls = z
  .strictObject({
    caFile: file()
      .optional()
      .describe("PEM file of root certificates that engines' certificates are verified with; unset: Node's."),
    certFile: file().optional().describe("PEM file with a client certificate for engines that ask for one."),
    keyFile: file().optional().describe("PEM file with its private key."),
    verify: z
      .boolean()
      .default(true)
      .describe("false accepts any certificate: the connection is encrypted, but the engine is not authenticated."),
    minVersion: minVersion(),
    watchMillis: watchMillis(),
  })
  .refine((value) => (value.certFile === undefined) === (value.keyFile === undefined), {
    path: ["keyFile"],
    message: "both certFile and keyFile, or neither",
  });
