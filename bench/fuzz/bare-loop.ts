/**
 * Child process: an event loop that does nothing but answer whatever it reads, for a probe that finds out what a machine that
 * others use too makes a client wait beside a process that has nothing else to do. Its parent gets the port.
 */
import { type AddressInfo, createServer } from "node:net";

const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");

const server = createServer({ noDelay: true }, (socket) => {
  socket.on("data", () => void socket.write(ANSWER));
  socket.on("error", () => {});
});
server.listen(0, "127.0.0.1", () => process.send!({ port: (server.address() as AddressInfo).port }));
process.on("disconnect", () => process.exit(0));
