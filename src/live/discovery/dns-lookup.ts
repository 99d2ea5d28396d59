import { Resolver } from "node:dns/promises";

export type DnsType = "A" | "AAAA" | "SRV";

/** One address behind a name. */
export interface DnsAddress {
  /** As a URL has it: IPv6 in brackets. */
  readonly host: string;
  readonly port: number;
  /** Name that was looked up for it, for certificates. */
  readonly name: string;
}

export interface DnsAnswer {
  /** In order of host and port, each once; never empty. */
  readonly addresses: readonly DnsAddress[];
  /** Shortest time to live of its records; undefined where it is not known. */
  readonly ttlSeconds: number | undefined;
}

export interface DnsQuestion {
  /** Full name: no search domain is added. */
  readonly name: string;
  readonly type: DnsType;
  /** Of A and AAAA records. */
  readonly port: number;
}

export interface DnsServers {
  /** None: those of the system. */
  readonly servers: readonly string[];
  /** Bound on one question; each is asked twice. */
  readonly timeoutMillis: number;
}

/** Addresses of one name at most, and hosts of one SRV name. */
const ADDRESSES_MAX = 1_024;
const TRIES = 2;
const NOTHING_THERE: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"]);

/** Asks name servers; one at a time per name. */
export class DnsLookup {
  readonly #resolver: Resolver;

  constructor({ servers, timeoutMillis }: DnsServers) {
    this.#resolver = new Resolver({ timeout: timeoutMillis, tries: TRIES });
    if (servers.length > 0) this.#resolver.setServers(servers);
  }

  /** Rejects with an Error where the name has no such records or nobody answers. */
  async ask({ name, type, port }: DnsQuestion): Promise<DnsAnswer> {
    const found = type === "SRV" ? await this.#services(name) : await this.#hosts(name, type, port);
    const all = new Map(found.addresses.map((one) => [`${one.host} ${String(one.port).padStart(5, "0")}`, one]));
    const addresses = [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
    if (addresses.length === 0) throw new Error(`${name} has no host with an address`);
    if (addresses.length > ADDRESSES_MAX) throw new Error(`${name} has ${addresses.length} addresses, more than 1024`);
    return { addresses, ttlSeconds: found.ttlSeconds };
  }

  /** Ends what is under way. */
  cancel(): void {
    this.#resolver.cancel();
  }

  async #hosts(name: string, type: "A" | "AAAA", port: number): Promise<DnsAnswer> {
    const records =
      type === "A"
        ? await this.#resolver.resolve4(name, { ttl: true })
        : await this.#resolver.resolve6(name, { ttl: true });
    const addresses = records.map(({ address }) => ({ host: type === "A" ? address : `[${address}]`, port, name }));
    return { addresses, ttlSeconds: Math.min(...records.map(({ ttl }) => ttl)) };
  }

  /** Hosts of the lowest priority, which clients are to use (RFC 2782). A host without an address is passed over. */
  async #services(name: string): Promise<DnsAnswer> {
    const records = await this.#resolver.resolveSrv(name);
    if (records.length > ADDRESSES_MAX) throw new Error(`${name} has ${records.length} hosts, more than 1024`);
    const first = Math.min(...records.map(({ priority }) => priority));
    const preferred = records.filter(({ priority }) => priority === first);
    const hosts = await Promise.all(preferred.map((record) => this.#hostsOf(record)));
    return { addresses: hosts.flat(), ttlSeconds: undefined };
  }

  async #hostsOf({ name, port }: { readonly name: string; readonly port: number }): Promise<readonly DnsAddress[]> {
    for (const type of ["A", "AAAA"] as const) {
      try {
        return (await this.#hosts(name, type, port)).addresses;
      } catch (error) {
        if (!NOTHING_THERE.has(codeOf(error))) throw error;
      }
    }
    return [];
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "";
}
