import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const file = () => z.string().min(1).max(4096);
const minVersion = () => z.enum(["TLSv1.2", "TLSv1.3"]).default("TLSv1.2").describe("Oldest version that is spoken.");
const watchMillis = () =>
  millis(20, MILLIS_PER_DAY).default(1000).describe("Time between two looks at the files; a change counts at once.");

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
        "PEM file of roots; clients, probes and scrapers too, must show a certificate of one of them. Unset: none.",
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
    caFile: file().optional().describe("PEM file of roots that engines' certificates are held against; unset: Node's."),
    certFile: file()
      .optional()
      .describe("PEM file with a certificate that is shown to engines, where they ask for one."),
    keyFile: file().optional().describe("PEM file with its private key."),
    verify: z.boolean().default(true).describe("false takes any certificate: the connection is secret, and anybody's."),
    minVersion: minVersion(),
    watchMillis: watchMillis(),
  })
  .refine((value) => (value.certFile === undefined) === (value.keyFile === undefined), {
    path: ["keyFile"],
    message: "both certFile and keyFile, or neither",
  });
