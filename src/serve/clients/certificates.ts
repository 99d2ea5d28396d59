import { part } from "../assembly/part.ts";

/** When each certificate that this gateway shows runs out: Unix seconds by section of the configuration. */
export type Certificates = Map<string, number>;

export const certificatesPart = part({ name: "certificates", needs: [], start: (): Certificates => new Map() });
