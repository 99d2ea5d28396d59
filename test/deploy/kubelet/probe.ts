import { credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import { connect } from "node:net";
import { HEALTH, serviceOf } from "../../picker/protocol.ts";
import type { Container, Probe } from "./pod-objects.ts";

const Health = makeGenericClientConstructor(serviceOf("health.proto", HEALTH), "health");

const TIME_LIMIT_MILLIS = 2_000;

/** Whether a container passes a probe, asked as a kubelet asks it. */
export async function passes(probe: Probe, container: Container, address: string): Promise<boolean> {
  const portOf = (port: string | number): number =>
    typeof port === "number" ? port : container.ports!.find(({ name }) => name === port)!.containerPort;
  try {
    if (probe.httpGet !== undefined) {
      const { path, port, scheme = "HTTP" } = probe.httpGet;
      const signal = AbortSignal.timeout(TIME_LIMIT_MILLIS);
      const answer = await fetch(`${scheme.toLowerCase()}://${address}:${portOf(port)}${path}`, { signal });
      await answer.arrayBuffer();
      return answer.status >= 200 && answer.status < 400;
    }
    if (probe.tcpSocket !== undefined) return await connects(address, portOf(probe.tcpSocket.port));
    if (probe.grpc !== undefined) return await isServing(`${address}:${probe.grpc.port}`, probe.grpc.service ?? "");
  } catch {
    return false;
  }
  throw new Error(`a probe of ${container.name} that is not known`);
}

async function connects(host: string, port: number): Promise<boolean> {
  const socket = connect(port, host);
  const did = await new Promise<boolean>((resolve) => {
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  });
  socket.destroy();
  return did;
}

async function isServing(address: string, service: string): Promise<boolean> {
  const client = new Health(address, credentials.createInsecure());
  const check = client["Check"]!.bind(client) as (
    request: object,
    answered: (error: Error | null, answer?: { status: string | number }) => void,
  ) => void;
  const status = await new Promise((resolve) => check({ service }, (_, answer) => resolve(answer?.status)));
  client.close();
  return status === "SERVING" || status === 1;
}
