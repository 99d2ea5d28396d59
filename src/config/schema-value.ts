import * as z from "zod";

export const MILLIS_PER_DAY = 86_400_000;
export const MIB = 1_048_576;
export const BLOCK_TOKENS_MAX = 4_096;
/** More of them have no room in memory. */
export const KV_BLOCKS_MAX = 100_000_000;
/** Data-parallel ranks of a server at most. */
export const DATA_PARALLEL_MAX = 1024;

export const environmentName = () =>
  z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .meta({ expected: "the name of an environment variable", secret: true });

export const origin = () =>
  z
    .string()
    .refine(isOrigin, { message: "not an origin" })
    .meta({ expected: "an origin such as http://10.0.0.5:8000" });

export const httpUrl = () =>
  z
    .url({ protocol: /^https?$/ })
    .max(1024)
    .refine((text) => !hasUser(text), { message: "a URL without a user" })
    .meta({ expected: "an http or https URL of at most 1024 characters, without user and password" });

export const header = () =>
  z
    .string()
    .regex(/^[a-z0-9-]{1,128}$/)
    .meta({ expected: "a header's name in lower case" });

export const headers = () => z.array(header()).max(16);

export const bytes = () =>
  z
    .int()
    .min(1024)
    .max(1024 * 1024 * MIB);

export const millis = (min: number, max: number) => z.int().min(min).max(max);

function isOrigin(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) return false;
  return url.pathname === "/" && url.search === "" && url.hash === "" && !hasUser(text);
}

/** Whether a URL holds a user or a password, which would be shown wherever the URL is. */
function hasUser(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username !== "" || password !== "";
}
