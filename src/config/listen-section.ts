import * as z from "zod";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";
import { listenTls } from "./tls-section.ts";

/** Where the gateway listens, and how it starts and ends. */
export const listen = z
  .strictObject({
    host: z.string().min(1).default("127.0.0.1").describe("Address to listen on."),
    port: z.int().min(0).max(65_535).default(8080).describe("Port to listen on; 0 takes a free one."),
    adminHost: z.string().min(1).default("127.0.0.1").describe("Address of the administrative port."),
    adminPort: z
      .int()
      .min(0)
      .max(65_535)
      .optional()
      .describe(
        "Port of status pages and administration, which `port` does not serve; /metrics, /healthz and /readyz are on both. Unset: the one after `port`, and a free one where that is 0.",
      ),
    warmUpMillis: millis(0, 60_000)
      .default(1000)
      .describe(
        "Longest time for which made-up requests run before the gateway is ready, so that the first real ones meet compiled code: once for the decision, once for the whole path, and with picker.port once as a proxy asks, there by CPU time; 0 for a quick start with slow first requests.",
      ),
    drainNoticeMillis: millis(0, MILLIS_PER_DAY)
      .optional()
      .describe(
        "After a stop signal, time in which /readyz fails and requests are still taken, each answer announcing the end of its connection, so that load balancers and clients learn of it; unset: 5000 in a Kubernetes pod, else 0.",
      ),
    drainMillis: millis(0, MILLIS_PER_DAY)
      .default(30_000)
      .describe(
        "Longest wait after that for requests in flight, and for connections that clients keep to be idle; requests of new connections are refused, and /metrics answers until the end.",
      ),
    tls: listenTls.prefault({}).describe("TLS towards clients, on both ports."),
  })
  .refine(({ port, adminPort }) => port === 0 || port !== adminPort, {
    path: ["adminPort"],
    message: "another port than listen.port",
  })
  .refine(({ port, adminPort }) => port < 65_535 || adminPort !== undefined, {
    path: ["adminPort"],
    message: "a port, since there is none after listen.port",
  });

/** Where status pages and administration are served. */
export function adminPortOf({ port, adminPort }: Pick<z.infer<typeof listen>, "port" | "adminPort">): number {
  return adminPort ?? (port === 0 ? 0 : port + 1);
}
