// The files of a session on a node.

import { contentsOf, textOf } from "./files.js";
import { small } from "./node_http.js";
import { text } from "./shapes.js";
import { refused } from "./wire.js";

const HOME = "/home/user";

/** The files of a session. Relative ones are in `/home/user`. */
export class NodeFiles {
  readonly #put: (path: string, body: Uint8Array) => Promise<unknown>;
  readonly #find: (method: string, path: string) => Promise<Buffer | undefined>;

  /** Use `Session.files`. */
  constructor(
    put: (path: string, body: Uint8Array) => Promise<unknown>,
    find: (method: string, path: string) => Promise<Buffer | undefined>,
  ) {
    this.#put = put;
    this.#find = find;
  }

  /** Writes a file, a text in UTF-8, and makes its directory. It has 64 MiB at most. */
  async put(path: string, contents: string | Uint8Array): Promise<void> {
    await this.#put(fileOf(path), small(contentsOf(contents)));
  }

  /** Returns the contents of a file; `undefined` if there is none. */
  async get(path: string): Promise<Uint8Array | undefined> {
    const found = await this.#find("GET", fileOf(path));
    return found && new Uint8Array(found);
  }

  /** Returns the text of a file, in UTF-8; `undefined` if there is none. */
  async text(path: string): Promise<string | undefined> {
    return textOf(await this.get(path));
  }

  /** Removes a file or an empty directory. Returns whether there was one. */
  async remove(path: string): Promise<boolean> {
    return (await this.#find("DELETE", fileOf(path))) !== undefined;
  }
}

function fileOf(path: string): string {
  text(path, "path");
  if (!path.isWellFormed()) throw refused(["path"], "a text that has half of a surrogate pair");
  const absolute = path.startsWith("/") ? path : `${HOME}/${path}`;
  return `/files${absolute.split("/").map(encodeURIComponent).join("/")}`;
}
