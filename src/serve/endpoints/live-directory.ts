import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import { part } from "../assembly/part.ts";

/** The endpoints that are known. */
export const directoryPart = part({ name: "directory", needs: [], start: () => new EndpointDirectory() });

/** How the sources of endpoints stand; whoever follows one enters it here. */
export const sourcesPart = part({ name: "sources", needs: [], start: () => new SourceBoard() });
