import type { EndpointEntry, EndpointDirectory } from "#live/discovery/endpoint-directory.ts";

/** The endpoints as the first thread last had them; connections stay where an endpoint does. */
export function follow(directory: EndpointDirectory, entries: readonly EndpointEntry[]): void {
  const ids = new Set(entries.map(({ id }) => id));
  for (const { id } of directory.all()) if (!ids.has(id)) directory.remove(id);
  for (const entry of entries) {
    const known = directory.get(entry.id);
    if (known !== undefined && isSamePlace(known, entry)) {
      for (const key of Object.keys(known)) if (!(key in entry)) Reflect.deleteProperty(known, key);
      Object.assign(known, entry);
    } else {
      if (known !== undefined) directory.remove(entry.id);
      directory.add({ ...entry });
    }
  }
}

function isSamePlace(one: EndpointEntry, other: EndpointEntry): boolean {
  return (
    one.url === other.url &&
    one.dataParallelRank === other.dataParallelRank &&
    one.apiKey === other.apiKey &&
    one.serverName === other.serverName
  );
}
