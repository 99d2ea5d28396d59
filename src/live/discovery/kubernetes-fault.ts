/** The API server answered with a status that is no success. */
export class StatusError extends Error {
  readonly statusCode: number;

  constructor(statusCode: number) {
    super(`status ${statusCode}`);
    this.statusCode = statusCode;
  }
}

export const GONE = 410;

/** What a status means for who runs the gateway. */
const STATUS_MEANINGS: ReadonlyMap<number, string> = new Map([
  [401, "the API server does not accept the credential"],
  [403, "the service account lacks the right; a Role must grant list and watch"],
  [404, "the API server does not know the resource; is its CustomResourceDefinition installed?"],
  [429, "the API server asks for fewer requests"],
]);

/**
 * The status or the system's code, in a sentence for people, and nothing that a server or a credential could have put
 * into a message.
 */
export function detailOf(error: unknown): string {
  const status = statusOf(error);
  if (status !== undefined) return statusDetail(status);
  if (!(error instanceof Error)) return "the API server cannot be read";
  if (error.name === "TimeoutError" || (hasCode(error) && SILENT_CODES.has(error.code)))
    return "the API server did not answer in 30 s";
  if (hasCode(error)) return `the API server cannot be reached (${error.code})`;
  return error.cause === undefined ? `the API server cannot be read (${error.name})` : detailOf(error.cause);
}

const SILENT_CODES: ReadonlySet<string> = new Set([
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function hasCode(error: Error): error is Error & { readonly code: string } {
  return "code" in error && typeof error.code === "string";
}

export function statusDetail(status: number | undefined): string {
  const meaning = status === undefined ? undefined : STATUS_MEANINGS.get(status);
  return `status ${status ?? "unknown"}${meaning === undefined ? "" : `: ${meaning}`}`;
}

export function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { statusCode, code } = error as { readonly statusCode?: unknown; readonly code?: unknown };
  // A DOMException, such as a timeout's, has a number that is no status.
  return [statusCode, code].find((one) => typeof one === "number" && one >= 100 && one < 600) as number | undefined;
}
