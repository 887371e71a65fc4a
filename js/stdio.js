// Connects Python's three standard streams to the host: bytes out, bytes in, nothing kept here.

import { op_isolet_stdin, op_isolet_write } from "ext:core/ops";

/**
 * What `FS.ErrnoError` takes for an interrupted system call; Python retries after its signal check.
 */
const EINTR = 27;

/** @returns {object} */
function writer(stream) {
  return {
    __proto__: null,
    isatty: false,
    write(bytes) {
      op_isolet_write(stream, bytes);
      return bytes.length;
    },
    fsync() {},
  };
}

/** Has the guest see a terminal behind these of its output streams. */
export function becomeTerminal({ API }, stdout, stderr, columns, rows) {
  const { public_api: api } = API;
  const terminal = (stream) => ({
    __proto__: null,
    ...writer(stream),
    isatty: true,
    getTerminalSize: () => ({ __proto__: null, columns, rows }),
  });
  if (stdout) api.setStdout(terminal(1));
  if (stderr) api.setStderr(terminal(2));
}

/** Whether the descriptors of standard output and standard error are open. */
export function hasOutput({ FS }) {
  return FS.getStream(1) != null && FS.getStream(2) != null;
}

/** Installs the stream devices on a booted module. */
export function connectStreams(Module) {
  const { API, FS } = Module;
  API.initializeStreams(() => null, () => {}, () => {});
  API.public_api.setStdout(writer(1));
  API.public_api.setStderr(writer(2));
  API.public_api.setStdin({
    __proto__: null,
    isatty: false,
    read(bytes) {
      const count = op_isolet_stdin(bytes);
      if (count < 0) throw new FS.ErrnoError(EINTR);
      return count;
    },
  });
}
