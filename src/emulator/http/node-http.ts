/**
 * What engines use of node:http. An import of that module by its name makes Node load all that its exports name, fetch and
 * web sockets too, which an engine has no use for: 60 ms of CPU, a fifth of its start.
 */
export const { Agent, createServer, request } = process.getBuiltinModule("node:http");
