// Connects Python's three standard streams to the host: bytes out, bytes in, nothing kept here.

import { op_isolet_stdin, op_isolet_write } from "ext:core/ops";

/** What `FS.ErrnoError` takes for an interrupted system call; Python retries after its signal check. */
const EINTR = 27;

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
