import { adminPortOf } from "./listen-section.ts";
import type { Problem } from "./problem.ts";
import type { Config } from "./schema.ts";
import type { Path } from "./schema-node.ts";

interface Port {
  readonly path: Path;
  readonly host: string;
  readonly port: number | undefined;
}

/** Ports for proxies that something else of the same gateway listens on. */
export function portClashes({ listen, picker, tap }: Pick<Config, "listen" | "picker" | "tap">): Problem[] {
  const { host, adminHost } = listen;
  const known: Port[] = [
    { path: ["listen", "port"], host, port: listen.port },
    { path: ["listen", "adminPort"], host: adminHost, port: adminPortOf(listen) },
  ];
  const health = picker.port === undefined ? undefined : picker.healthPort;
  const problems: Problem[] = [];
  for (const one of [
    { path: ["picker", "port"], host, port: picker.port },
    { path: ["picker", "healthPort"], host, port: health },
    { path: ["tap", "envoy", "port"], host, port: tap.envoy.port },
  ]) {
    if (one.port === undefined || one.port === 0) continue;
    const other = known.find(({ host, port }) => port === one.port && shareAddress(host, one.host));
    if (other === undefined) known.push(one);
    else
      problems.push({ path: one.path, message: `expected another port than ${other.path.join(".")}, got ${one.port}` });
  }
  return problems;
}

function shareAddress(host: string, other: string): boolean {
  return host === other || [host, other].some((one) => one === "0.0.0.0" || one === "::");
}
