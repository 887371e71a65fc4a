// The files of a session.

import type { Argument } from "./connection.js";
import { contents as checkContents, text } from "./shapes.js";
import { encode } from "./wire.js";

/** An entry of a directory of a session. */
export interface FileEntry {
  /** Its name, without the directory. */
  readonly name: string;
  /** Whether it is a directory itself. */
  readonly isDir: boolean;
  /** In bytes. */
  readonly size: number;
}

/**
 * The files of a session, those of its mounts too. Relative ones are in `/home/user`. A file that
 * crosses may be as large as the limit `valueBytes`, 256 MiB by default.
 */
export class Files {
  readonly #ask: (operation: string, ...args: Argument[]) => Promise<unknown>;

  /** Use `Session.files`. */
  constructor(ask: (operation: string, ...args: Argument[]) => Promise<unknown>) {
    this.#ask = ask;
  }

  /** Writes a file; a text in UTF-8. */
  async put(path: string, contents: string | Uint8Array): Promise<void> {
    text(path, "path");
    await this.#ask("put_file", path, encode(contentsOf(contents), "contents"));
  }

  /** Returns the contents of a file; `undefined` if there is none. */
  async get(path: string): Promise<Uint8Array | undefined> {
    text(path, "path");
    return ((await this.#ask("get_file", path)) as Uint8Array | null) ?? undefined;
  }

  /** Returns the text of a file, in UTF-8; `undefined` if there is none. */
  async text(path: string): Promise<string | undefined> {
    return textOf(await this.get(path));
  }

  /** Returns the entries of a directory. */
  async list(path = "."): Promise<FileEntry[]> {
    text(path, "path");
    const found = (await this.#ask("list_files", path)) as {
      name: string;
      is_dir: boolean;
      size: number;
    }[];
    return found.map(({ name, is_dir: isDir, size }) => ({ name, isDir, size }));
  }

  /** Removes a file or an empty directory. Returns whether there was one. */
  async remove(path: string): Promise<boolean> {
    text(path, "path");
    return (await this.#ask("remove_file", path)) as boolean;
  }
}

/**
 * Returns what a file is to contain.
 *
 * @throws {ConfigError} it is neither a text nor bytes.
 */
export function contentsOf(contents: string | Uint8Array): Uint8Array {
  checkContents(contents, "contents");
  return typeof contents === "string" ? Buffer.from(contents) : contents;
}

/** Returns the text in a file, if there is one. */
export function textOf(bytes: Uint8Array | undefined): string | undefined {
  return bytes && new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
}
