// Finds the `isolet` binary.

import { accessSync, closeSync, constants, openSync, readSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";

import { StartError } from "./errors.js";

const NAME = process.platform === "win32" ? "isolet.exe" : "isolet";

/** The package that has the binary for this platform. It is an optional dependency of this one. */
const PACKAGE = `@isolet/${process.platform}-${process.arch}`;

/**
 * Returns the path of the `isolet` binary: `binary`, or `$ISOLET_BIN`, or that of the package for
 * this platform, or the first on `PATH`.
 *
 * @throws {StartError} there is none. The message lists where it was looked for.
 */
export function findBinary(binary?: string): string {
  const given = [
    [binary, "the option `binary`"],
    [process.env["ISOLET_BIN"], "`$ISOLET_BIN`"],
  ] as const;
  for (const [file, how] of given) {
    if (!file) continue;
    const found = path.resolve(file);
    if (isProgram(found)) return found;
    throw new StartError(`${how} names \`${found}\`, which is no program`);
  }
  const packaged = ofPackage();
  if (packaged !== undefined) return packaged;
  const directories = (process.env["PATH"] ?? "").split(path.delimiter).filter((each) => each !== "");
  for (const directory of directories) {
    const found = path.resolve(directory, NAME);
    // This very package has a script of the same name there, which would run itself.
    if (isProgram(found) && !isScript(found)) return found;
  }
  throw new StartError(
    `the program \`${NAME}\` is missing; looked for the package \`${PACKAGE}\` and on \`PATH\``,
    `install \`${PACKAGE}\`, or set \`ISOLET_BIN\``,
  );
}

function ofPackage(): string | undefined {
  try {
    const found = createRequire(import.meta.url).resolve(`${PACKAGE}/bin/${NAME}`);
    return isProgram(found) ? found : undefined;
  } catch {
    return undefined;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isScript(file: string): boolean {
  const start = Buffer.alloc(2);
  let opened;
  try {
    opened = openSync(file, "r");
    readSync(opened, start);
  } catch {
    // Who may only execute it has no script.
    return false;
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
  return start.toString("latin1") === "#!";
}
