// What commands of the host read and write while they run: node calls.mjs MODULE
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import * as host from "./host.mjs";

const encoder = new TextEncoder();
const { shell, root, output } = host.recorded(process.argv[2]);

const content = (name) => fs.readFileSync(path.join(root, "work", name), "utf8");

/** A run that has asked for its first call. */
class Run {
  constructor(script) {
    this.script = script;
    this.session = shell.session({ cwd: "/work", commands: ["python", "p"] });
    this.take(shell.run(this.session, { script }));
  }

  take(step) {
    this.next = step;
    if (step.next === host.call) this.call = step.value;
  }

  /** Writes and checks what is printed, and whether the command may go on. */
  writes(text, seen, written = 0, descriptor = 1) {
    const title = `${this.script}: ${text}`;
    const result = shell.write(this.session, this.call.id, descriptor, encoder.encode(text));
    assert.equal(output(), seen, title);
    assert.equal(result, written, title);
    return this;
  }

  fails(text, seen) {
    return this.writes(text, seen, 0, 2);
  }

  /** Reads from the pipe and checks what comes. */
  reads(expected) {
    const step = shell.pull(this.session, this.call.id);
    assert.equal(step.next, host.piece, this.script);
    assert.equal(`${Buffer.from(step.bytes)}`, expected, this.script);
    return this;
  }

  /** Ends the command and checks what is printed until the next call, or the end. */
  ends(seen, status = 0) {
    shell.answer(this.session, this.call.id, status);
    this.take(shell.resume(this.session));
    while (this.next.next === host.wait) this.take(shell.resume(this.session));
    assert.equal(output(), seen, this.script);
    return this;
  }

  finished(status = 0) {
    assert.equal(this.next.next, host.finished, this.script);
    assert.equal(this.next.value.status, status, this.script);
    shell.free(this.session);
  }
}

const run = (script) => new Run(script);
/** A run that has printed something before its first call. */
function after(seen, script) {
  const begun = run(script);
  assert.equal(output(), seen, script);
  return begun;
}

// Seen at once, after what was there before and before what comes then.
run("p").writes("a\n", "a\n").fails("b\n", "[b\n]").writes("c", "c").ends("", 3).finished(3);
for (
  const script of [
    "echo -; p; echo +",
    "echo - && p && echo +",
    "{ echo -; p; echo +; }",
    "(echo -; p; echo +)",
    "f() { echo -; p; echo +; }; f",
    "if echo -; then p; echo +; fi",
    "for x in 1; do echo -; p; echo +; done",
    "while echo -; p; do echo +; break; done",
    "case x in x) echo -; p; echo +;; esac",
    "eval 'echo -; p; echo +'",
    "bash -c 'echo -; p; echo +'",
    "true | { echo -; p; echo +; }",
    "echo -; X=1 p; echo +",
    "echo -; command p; echo +",
    "echo -; ! { ! p; }; echo +",
    "echo -; echo x | p; echo +",
    "echo -; p < /dev/null; echo +",
    "echo -; p <<< x; echo +",
    "echo -; timeout 9 p; echo +",
  ]
) {
  after("-\n", script).writes("a\n", "a\n").fails("b\n", "[b\n]").ends("+\n").finished();
}

// Redirections.
run("p 2>&1").writes("a\n", "a\n").fails("b\n", "b\n").writes("c\n", "c\n").ends("").finished();
run("p >&2").writes("a\n", "[a\n]").fails("b\n", "[b\n]").ends("").finished();
run("p 2> /dev/null").writes("a\n", "a\n").fails("b\n", "").ends("").finished();
run("p > f; cat f").writes("a\n", "").fails("b\n", "[b\n]").ends("a\n").finished();
run("p > f 2>&1").writes("a\n", "").fails("b\n", "").writes("c\n", "").ends("").finished();
assert.equal(content("f"), "a\nb\nc\n");
run("p 2>&1 >> f").writes("d\n", "").fails("b\n", "b\n").ends("").finished();
assert.equal(content("f"), "a\nb\nc\nd\n");
run("p &> f").writes("a\n", "").fails("b\n", "").writes("c\n", "").ends("").finished();
assert.equal(content("f"), "a\nb\nc\n");
run("p 3>&1 1>&2 2>&3").writes("a\n", "[a\n]").fails("b\n", "b\n").ends("").finished();
run("p 3>&1 1>&2 2>&3 3>&-").fails("b\n", "b\n").ends("").finished();
run("p 3>&1 > f 2>&3; cat f").writes("a\n", "").fails("b\n", "b\n").ends("a\n").finished();
run("{ p; } 3>&1 1>&2 2>&3").writes("a\n", "").fails("b\n", "").ends("b\n[a\n]").finished();
run("{ p; } 2> f; cat f").writes("a\n", "").fails("b\n", "").ends("a\nb\n").finished();
run("{ p; p; } > f; cat f").writes("a\n", "").ends("").writes("b\n", "").ends("a\nb\n").finished();
run("exec > f; p; exec >&2; cat f").writes("a\n", "").ends("[a\n]").finished();
run("x=$(p 2>&1); echo -$x-").writes("a\n", "").fails("b\n", "").ends("-a b-\n").finished();
run("x=$(p); echo -$x-").writes("a\n", "").fails("b\n", "").ends("[b\n]-a-\n").finished();
run("exec 2>&1; p").fails("b\n", "b\n").writes("a\n", "a\n").ends("").finished();

// Pipelines: what reads it sees it while it runs, and its end ends the writer.
run("p | cat").writes("a\n", "").ends("a\n").finished();
run("p | grep b | cat").writes("a\nb\n", "").ends("b\n").finished();
run("p | while read x; do echo got $x; done").writes("a\n", "got a\n").writes("b\n", "got b\n")
  .ends("").finished();
run("p | head -1; echo +").writes("a\nb\n", "", 1).writes("c\n", "", 1).ends("a\n+\n").finished();
run("set -o pipefail; p | head -1").writes("a\n", "", 1).writes("b\n", "", 1).ends("a\n", 3)
  .finished(3);
run("p | { read x; echo $x; }; echo +").writes("a\nb\n", "a\n", 1).ends("+\n").finished();
run("p 2>&1 | while read x; do echo got $x; done").fails("a\n", "got a\n").ends("").finished();
run("p | sort").writes("b\n", "").writes("a\n", "").ends("a\nb\n").finished();
{
  // Who reads begins, and who writes to it runs when it reads.
  const reader = run("p | python");
  assert.equal(reader.call.name, "python");
  const step = shell.pull(reader.session, reader.call.id);
  assert.equal(step.next, host.call);
  shell.answer(reader.session, step.value.id, 0, encoder.encode("a\n"));
  reader.reads("a\n").reads("").writes("b\n", "b\n").ends("").finished();
}
run("p & wait").writes("a\n", "").ends("a\n").finished();

// A command that reads a pipe gets what is there, and more when it asks.
{
  const reader = run("yes | p");
  assert.equal(reader.call.more, true);
  const step = shell.pull(reader.session, reader.call.id);
  assert.equal(step.next, host.piece);
  assert.match(`${Buffer.from(step.bytes)}`, /^(y\n)+$/);
  reader.writes("a\n", "a\n").ends("").finished();
}
run("for x in 1 2; do echo $x; done | p").reads("1\n2\n").reads("").ends("").finished();
run("{ echo 1; exit 3; } | p").reads("1\n").reads("").reads("").ends("").finished();
{
  // It asks for what its writer needs.
  const reader = run("{ python; echo 2; } | p");
  const writer = { ...reader.next };
  assert.equal(writer.value.name, "p");
  const step = shell.pull(reader.session, reader.call.id);
  assert.equal(step.next, host.call);
  assert.equal(step.value.name, "python");
  shell.answer(reader.session, step.value.id, 0, encoder.encode("1\n"));
  reader.reads("1\n").reads("2\n").reads("").ends("").finished();
}
{
  const reader = run("{ sleep 0.05; echo 1; } | p");
  let step = shell.pull(reader.session, reader.call.id);
  assert.equal(step.next, host.wait);
  while (step.next === host.wait) step = shell.pull(reader.session, reader.call.id);
  assert.equal(`${Buffer.from(step.bytes)}`, "1\n");
  reader.reads("").ends("").finished();
}

// Who is stopped writes no more, and the run goes on.
{
  const stopped = run("timeout 0.05 p; echo $?");
  stopped.writes("a\n", "a\n");
  const until = Date.now() + 100;
  while (Date.now() < until);
  stopped.writes("b\n", "b\n124\n", 2).writes("c\n", "", 2).reads("").ends("").finished();
}
{
  const cancelled = run("p; echo no");
  shell.bytes(shell.exports.session_flag(cancelled.session) >>> 0, 1)[0] = 1;
  cancelled.writes("a\n", "a\n", 2).ends("").finished(130);
}

fs.rmSync(root, { recursive: true });
console.log("calls: as expected");
