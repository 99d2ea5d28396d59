import { connect, createServer } from "node:net";

/** `kubectl -n NAMESPACE port-forward service/NAME LOCAL:PORT` where no kubelet forwards: through the service itself. */
const words = process.argv.slice(2);
const namespace = words[words.indexOf("-n") + 1]!;
const [, name] = words.find((word) => word.startsWith("service/"))!.split("/");
for (const [, local, port] of words.join(" ").matchAll(/\b(\d+):(\d+)\b/g)) {
  createServer((client) => {
    const server = connect({ host: `${name}.${namespace}`, port: Number(port) });
    client.on("error", () => server.destroy());
    server.on("error", () => client.destroy());
    client.pipe(server).pipe(client);
  }).listen(Number(local), "127.0.0.1");
}
