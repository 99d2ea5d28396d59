import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** PEM texts of a certificate and its private key. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

const YEARS = 10;
const SERIAL_BYTES = 16;
const INTEGER = 0x02;
const BIT_STRING = 0x03;
const OCTET_STRING = 0x04;
const UTF8_STRING = 0x0c;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const SET = 0x31;
const DNS_NAME = 0x82;
const EXPLICIT_0 = 0xa0;
const EXPLICIT_3 = 0xa3;
/** Object identifiers with their tag and length: ecdsa-with-SHA256, commonName, subjectAltName. */
const ECDSA_SHA256 = Buffer.from("06082a8648ce3d040302", "hex");
const COMMON_NAME = Buffer.from("0603550403", "hex");
const ALTERNATIVE_NAMES = Buffer.from("0603551d11", "hex");
const VERSION_3 = Buffer.from("020102", "hex");

/**
 * A certificate for `name` on a new P-256 key, signed by itself and valid for ten years from a day before `now`: for a
 * connection that is encrypted and whose client does not ask who answers, as gateways reach their pickers.
 */
export function selfSigned(name: string, now: Date): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const serial = randomBytes(SERIAL_BYTES);
  // Positive, and of full length.
  serial[0] = (serial[0]! & 0x7f) | 0x40;
  const algorithm = der(SEQUENCE, ECDSA_SHA256);
  const holder = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8_STRING, Buffer.from(name)))));
  const from = new Date(now);
  from.setUTCDate(from.getUTCDate() - 1);
  const until = new Date(from);
  until.setUTCFullYear(until.getUTCFullYear() + YEARS);
  const names = der(SEQUENCE, der(DNS_NAME, Buffer.from(name)));
  const unsigned = der(
    SEQUENCE,
    der(EXPLICIT_0, VERSION_3),
    der(INTEGER, serial),
    algorithm,
    holder,
    der(SEQUENCE, time(from), time(until)),
    holder,
    publicKey.export({ type: "spki", format: "der" }),
    der(EXPLICIT_3, der(SEQUENCE, der(SEQUENCE, ALTERNATIVE_NAMES, der(OCTET_STRING, names)))),
  );
  const signature = sign("sha256", unsigned, privateKey);
  const whole = der(SEQUENCE, unsigned, algorithm, der(BIT_STRING, Buffer.from([0]), signature));
  const lines = whole.toString("base64").match(/.{1,64}/g)!;
  return {
    cert: ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n"),
    key: privateKey.export({ type: "pkcs8", format: "pem" }),
  };
}

/** A value of ASN.1 with its tag and length. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), content]);
}

function time(at: Date): Buffer {
  return der(GENERALIZED_TIME, Buffer.from(at.toISOString().replaceAll(/[-:T]|\.\d+/g, "")));
}
