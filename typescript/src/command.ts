#!/usr/bin/env node
// The command `isolet` of this package, for `npx isolet`: runs the binary that it finds.

import { spawn } from "node:child_process";
import { constants } from "node:os";
import process from "node:process";

import { findBinary } from "./binary.js";
import { StartError } from "./errors.js";

/** A terminal sends these to both processes. The binary decides what they mean. */
const OF_TERMINALS = ["SIGINT", "SIGQUIT"] as const;
/** Somebody else sends these to this process alone. */
const OF_OTHERS = ["SIGTERM", "SIGHUP", "SIGUSR1"] as const;

function main(): void {
  const child = spawn(binary(), process.argv.slice(2), { stdio: "inherit" });
  for (const signal of OF_TERMINALS) process.on(signal, () => {});
  for (const signal of OF_OTHERS) process.on(signal, () => child.kill(signal));
  child.on("error", (error) => fail(error.message));
  child.on("exit", (code, signal) => {
    process.exit(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
  });
}

function binary(): string {
  try {
    return findBinary();
  } catch (error) {
    if (error instanceof StartError) return fail(error.message);
    throw error;
  }
}

function fail(message: string): never {
  process.stderr.write(`error: ${message}\n`);
  process.exit(2);
}

main();
