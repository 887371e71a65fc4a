// The errors of this package.

import type { Execution } from "./execution.js";
import { inOwnWords } from "./names.js";

/** The host failed: nothing here says anything about the guest's code. */
export class IsoletError extends Error {
  static {
    this.prototype.name = "IsoletError";
  }

  /** What helps, if something is known to. The message has it, too. */
  readonly hint: string | undefined;

  constructor(message: string, hint?: string | null) {
    super(hint ? `${message} (hint: ${hint})` : message);
    this.hint = hint ?? undefined;
  }
}

/** An argument, a policy or a name is invalid. */
export class ConfigError extends IsoletError {
  static {
    this.prototype.name = "ConfigError";
  }
}

/** The files of the interpreter are missing or damaged. */
export class AssetsError extends IsoletError {
  static {
    this.prototype.name = "AssetsError";
  }
}

/** The server or an interpreter could not be started. */
export class StartError extends IsoletError {
  static {
    this.prototype.name = "StartError";
  }
}

/** The server has ended, and all of its sessions with it. The next session starts another one. */
export class ServerDiedError extends IsoletError {
  static {
    this.prototype.name = "ServerDiedError";
  }
}

/** The session has ended. Make a new one. */
export class SessionClosedError extends IsoletError {
  static {
    this.prototype.name = "SessionClosedError";
  }
}

/** The session runs code already. Use one session for each run at a time. */
export class BusyError extends IsoletError {
  static {
    this.prototype.name = "BusyError";
  }
}

/** A limit of the server was reached, such as that of open sessions or of a cell's code. */
export class LimitError extends IsoletError {
  static {
    this.prototype.name = "LimitError";
  }
}

/** A value cannot cross between host and guest. The message names its path. */
export class TransferError extends IsoletError {
  static {
    this.prototype.name = "TransferError";
  }
}

/** A package could not be found, fetched, or loaded. */
export class PackagesError extends IsoletError {
  static {
    this.prototype.name = "PackagesError";
  }
}

/** A journal cannot be read or written, or the session does something else than recorded. */
export class JournalError extends IsoletError {
  static {
    this.prototype.name = "JournalError";
  }
}

/** The client and the server do not understand each other. The message names both versions. */
export class ProtocolError extends IsoletError {
  static {
    this.prototype.name = "ProtocolError";
  }
}

/** The guest's code failed. Only `throwForError` and `eval` throw it. */
export class GuestError extends Error {
  static {
    this.prototype.name = "GuestError";
  }

  /** What the code did, with the output so far. */
  readonly execution: Execution;

  constructor(execution: Execution) {
    const { failure, status, hint } = execution;
    super(hint ? `${failure ?? status} (hint: ${hint})` : (failure ?? status));
    this.execution = execution;
  }
}

/** The guest's code did not end in time. */
export class GuestTimeoutError extends GuestError {
  static {
    this.prototype.name = "GuestTimeoutError";
  }
}

/** An error of the server, as `docs/reference/protocol.md` describes it. */
export interface WireError {
  kind: string;
  message: string;
  hint?: string | null;
  session_alive?: boolean;
}

/** Those of the protocol, and the codes of problems of `docs/reference/http-api.md`. */
const KINDS: Readonly<Record<string, typeof IsoletError>> = {
  __proto__: null as never,
  config: ConfigError,
  assets: AssetsError,
  start: StartError,
  closed: SessionClosedError,
  died: SessionClosedError,
  busy: BusyError,
  limit: LimitError,
  value: TransferError,
  packages: PackagesError,
  journal: JournalError,
  protocol: ProtocolError,
  invalid: ConfigError,
  unauthorized: ConfigError,
  denied: ConfigError,
  not_found: SessionClosedError,
  gone: SessionClosedError,
  no_route: ProtocolError,
  quota: LimitError,
  capacity: LimitError,
  queue: LimitError,
  draining: StartError,
  restoring: StartError,
};

/** Returns the error that the server has sent. */
export function fromWire(error: WireError): IsoletError {
  const { kind, message, hint } = error;
  return new (KINDS[kind] ?? IsoletError)(inOwnWords(message), hint && inOwnWords(hint));
}
