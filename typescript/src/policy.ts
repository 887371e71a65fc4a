// What guests may do: the options of `Sandbox`.

import path from "node:path";

import { snake } from "./names.js";
import { type JsonSchema } from "./schema.js";
import {
  byKey,
  callback,
  checked,
  date,
  flag,
  graceSeconds,
  limitSeconds,
  list,
  object,
  oneOf,
  secret,
  secretly,
  type Shapes,
  text,
  textOr,
  unchecked,
  whole,
  wrong,
} from "./shapes.js";
import { collect, type Tool, type Tools } from "./tools.js";

/** Limits of each session. Those that are left out have isolet's defaults. */
export interface Limits {
  /** Seconds of a run, without those in tools. Past it the status is `timeout`. */
  runTime?: number;
  /** Seconds that a run waits for tools. */
  hostTime?: number;
  /** Seconds from the interrupt of a run to its end, before the session is ended. */
  grace?: number;
  /** Bytes of the guest's memory. */
  memoryBytes?: number;
  /** Bytes of the standard output of a run that are kept. */
  stdoutBytes?: number;
  /** Bytes of the standard error of a run that are kept. */
  stderrBytes?: number;
  /** Bytes of a value or a file that crosses. */
  valueBytes?: number;
  /** Bytes of the code of a run. */
  sourceBytes?: number;
  /** Bytes of the arguments of a call of a tool. */
  callBytes?: number;
  /** Bytes of the displays of a run. */
  displayBytes?: number;
  /** Displays of a run. */
  displays?: number;
  /** Entries of `Execution.files`. */
  files?: number;
  /** Lines of output in a run that are kept. */
  outputLines?: number;
  /** Calls of tools in a run. Past it the status is `limit`. */
  toolCalls?: number;
  /** Calls of tools at once. Later ones wait. */
  concurrentTools?: number;
  /** Refused requests of the guest in a run. Past it the status is `limit`. */
  refusals?: number;
}

/** A directory of the host that guests see. */
export interface Mount {
  /** The directory. A relative one is relative to the program's. It has to exist. */
  path: string;
  /** `ro`, read-only; `overlay`, where what a guest writes stays in its memory; `rw`. */
  mode?: "ro" | "overlay" | "rw";
  /** Bytes that a session may write: 1 GiB for `rw`, 256 MiB for `overlay` by default. */
  quotaBytes?: number;
  /** Files that a session may create, 10,000 by default. */
  quotaFiles?: number;
}

/** A secret, such as the key of an API, that guests use without seeing it. */
export interface Secret {
  /** The secret, of 8 to 4,096 bytes. */
  value: string;
  /** The hosts that get it: `api.example.com`, `*.example.com:8443`, `http://localhost:8000`. */
  hosts: readonly string[];
  /** Whether bodies of requests get it, too. They do not by default. */
  inBodies?: boolean;
}

/** An access that was allowed or denied, as the server describes it. */
export type AuditEvent = Readonly<Record<string, unknown>> & { readonly session: number | null };

/** The fields of `SUBMIT(...)`, by which a guest ends a run with a result. */
export interface Submit {
  /** The name of the function, `SUBMIT` by default. */
  name?: string;
  /** The JSON schema of each argument by name; `true` for any value. */
  fields: Readonly<Record<string, JsonSchema | true>>;
}

/** What guests may do. Everything is denied unless an option allows it. */
export interface Policy {
  /** Functions of this program that guests can call: `{ search }`, or `[tool({ ... })]`. */
  tools?: Tools;
  /** `SUBMIT(...)`: `Execution.status` is then `submitted`, its `value` the fields. */
  submit?: Submit;
  /** Directories by their path in the guest: `{"/data": "./data"}`. A plain path is read-only. */
  mounts?: Readonly<Record<string, string | Mount>>;
  /** Rules such as `example.com` or `https://example.com:8443`: `docs/concepts/permissions.md`. */
  allowNet?: readonly string[];
  /** Rules that go before those of `allowNet`. */
  denyNet?: readonly string[];
  /** Whether requests to every public address are allowed. */
  allowPublicNet?: boolean;
  /** Headers by origin that the host adds to requests. Guests do not see them. */
  headers?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /**
   * Secrets by the environment variable in which guests find a placeholder. Requests to the
   * secret's hosts have the secret in its place: `docs/guides/secrets.md`.
   */
  secrets?: Readonly<Record<string, Secret>>;
  /** Files with further certificate authorities to trust. */
  caFiles?: readonly string[];
  /** Environment variables of guests. */
  env?: Readonly<Record<string, string>>;
  /** Names of variables that guests see with the host's values. */
  allowEnv?: readonly string[];
  /** Requirements, such as `pandas`, that every session has from its start. */
  packages?: readonly string[];
  /** Requirements that are loaded when the guest imports them. */
  allowPackages?: readonly string[];
  /** Packages or modules that are imported once, for all sessions. */
  preload?: readonly string[];
  /** Directories with wheels, which go before the index. */
  wheels?: readonly string[];
  /** Whether guests may import the installed packages of isolet. They may by default. */
  bundle?: boolean;
  /** Whether packages come from the cache and from `wheels` only. */
  offline?: boolean;
  /** Limits of each session. */
  limits?: Limits;
  /** Where guests run: in a locked-down process each, the default, or on threads of the server. */
  isolation?: "process" | "thread";
  /** Layers of isolation, such as `seccomp`, without which nothing runs. */
  require?: readonly string[];
  /** How many sessions at once may descend from one by `fork`. Without it, none can be forked. */
  forkable?: number;
  /** Whether a session goes on after a run that has ended its interpreter. It does by default. */
  checkpoint?: boolean;
  /** Makes sessions deterministic, from 0 to 2^64 - 1. */
  seed?: number | bigint;
  /** When a deterministic session starts. By default 2026-01-01 in UTC. */
  startTime?: Date;
  /** Called for each access that was allowed or denied. */
  onAudit?: (event: AuditEvent) => void;
}

/** A policy that was read: what the server gets, and what stays here. */
export interface Compiled {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly onAudit: ((event: AuditEvent) => void) | undefined;
  /** As `docs/reference/protocol.md` describes it. */
  readonly wire: Readonly<Record<string, unknown>>;
}

/** The least memory of a session, 64 MiB. */
const LEAST_MEMORY = 64 * 2 ** 20;

const LIMITS: Shapes<Limits> = {
  runTime: limitSeconds,
  hostTime: limitSeconds,
  grace: graceSeconds,
  memoryBytes: whole(LEAST_MEMORY),
  stdoutBytes: whole(),
  stderrBytes: whole(),
  valueBytes: whole(),
  sourceBytes: whole(),
  callBytes: whole(),
  displayBytes: whole(),
  displays: whole(),
  files: whole(),
  outputLines: whole(),
  toolCalls: whole(),
  concurrentTools: whole(1),
  refusals: whole(),
};

const MOUNT: Shapes<Mount> = {
  path: text,
  mode: oneOf("ro", "overlay", "rw"),
  quotaBytes: whole(),
  quotaFiles: whole(),
};

const SUBMIT: Shapes<Submit> = {
  name: text,
  fields: byKey((value, place) => {
    const isSchema = typeof value === "object" && value !== null && !Array.isArray(value);
    if (value !== true && !isSchema) throw wrong(place, value, "a JSON schema or true");
  }, "JSON schemas by name"),
};

const SECRET: Shapes<Secret> = { value: secret, hosts: list(text), inBodies: flag };

/** The shapes of what guests may do. */
const POLICY: Shapes<Policy> = {
  // `collect` checks them.
  tools: unchecked,
  submit: object(SUBMIT, ["fields"]),
  mounts: byKey(
    textOr(object(MOUNT, ["path"]), "a path, or an object with a `path`"),
    "directories by their path in the guest",
  ),
  allowNet: list(text),
  denyNet: list(text),
  allowPublicNet: flag,
  headers: byKey(byKey(secret, "headers"), "headers by origin"),
  secrets: byKey(
    secretly(object(SECRET, ["value", "hosts"]), "an object with `value` and `hosts`"),
    "secrets by variable",
  ),
  caFiles: list(text),
  env: byKey(secret, "texts"),
  allowEnv: list(text),
  packages: list(text),
  allowPackages: list(text),
  preload: list(text),
  wheels: list(text),
  bundle: flag,
  offline: flag,
  limits: object(LIMITS),
  isolation: oneOf("process", "thread"),
  require: list(text),
  forkable: whole(),
  checkpoint: flag,
  seed: whole(),
  startTime: date,
  onAudit: callback,
};

/**
 * Reads a policy.
 *
 * @throws {ConfigError} a key is unknown, or a value cannot be one of it.
 */
export function compile(policy: Policy): Compiled {
  const wire: Record<string, unknown> = {};
  const entries = checked(policy, POLICY, "a policy");
  const tools = collect(policy.tools ?? []);
  if (tools.size > 0) wire["tools"] = [...tools.values()].map((tool) => tool.wire);
  if (policy.onAudit) wire["audit"] = true;
  for (const [name, value] of entries) {
    if (name === "tools" || name === "onAudit") continue;
    wire[snake(name)] = converted(name, value);
  }
  return { tools, onAudit: policy.onAudit ?? undefined, wire };
}

function converted(name: string, value: unknown): unknown {
  switch (name) {
    case "submit":
      return submission(value as Submit);
    case "mounts":
      return Object.entries(value as NonNullable<Policy["mounts"]>).map(([guest, mount]) =>
        mountOf(guest, mount)
      );
    case "secrets":
      return Object.fromEntries(
        Object.entries(value as NonNullable<Policy["secrets"]>).map(([variable, its]) =>
          [variable, renamed(its)]
        ),
      );
    case "limits":
      return renamed(value as Limits);
    case "caFiles":
    case "wheels":
      return (value as readonly string[]).map((file) => path.resolve(file));
    case "startTime":
      return (value as Date).getTime() / 1000;
    default:
      return value;
  }
}

/**
 * Returns a submission as `docs/reference/protocol.md` describes it.
 *
 * @throws {ConfigError} it is none.
 */
export function submission(submit: Submit): Record<string, unknown> {
  POLICY.submit(submit, "submit");
  const { name, fields } = submit;
  const all = Object.entries(fields).map(([field, schema]) =>
    schema === true ? { name: field } : { name: field, schema }
  );
  return { name: name ?? "SUBMIT", fields: all };
}

function mountOf(guest: string, mount: string | Mount): Record<string, unknown> {
  const given: Mount = typeof mount === "string" ? { path: mount } : mount;
  const { path: host, ...rest } = renamed(given);
  // The server may have another working directory than the program has by now.
  return { mode: "ro", ...rest, host: path.resolve(String(host)), guest };
}

function renamed(given: object): Record<string, unknown> {
  const entries = Object.entries(given).filter(([, value]) => value != null);
  return Object.fromEntries(entries.map(([name, value]) => [snake(name), value]));
}
