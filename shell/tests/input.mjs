// Input that comes while a run goes on: node input.mjs MODULE
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import * as host from "./host.mjs";

const encoder = new TextEncoder();
const { shell, root, output } = host.recorded(process.argv[2]);

const sleep = (until) => {
  const millis = Math.max(0, until / 1000 - Date.now());
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, millis);
};

/**
 * Runs a script and checks what it does. A text is output; `input` is text that the run asks for,
 * `end` the end of it, `later` a time that passes while it asks, `answer` that to a call, and
 * `status` the status of the run, with what it leaves `unread`.
 */
function check(script, ...expected) {
  const title = script.slice(0, 70);
  const session = shell.session({ cwd: "/work", env: { HOME: "/" }, commands: ["python"] });
  let step = shell.run(session, { script, live: true });
  for (const want of expected) {
    while (step.next === host.wait) {
      assert.notEqual(step.value, null, `${title}: waits for nothing`);
      sleep(step.value);
      step = shell.resume(session);
    }
    if (typeof want === "string") {
      assert.equal(output(), want, title);
    } else if ("input" in want || "end" in want) {
      assert.equal(step.next, host.input, `${title}: asks`);
      shell.input(session, want.end ? undefined : encoder.encode(want.input));
      step = shell.resume(session);
    } else if ("later" in want) {
      assert.equal(step.next, host.input, `${title}: asks`);
      sleep(step.value);
      step = shell.resume(session);
    } else if ("cancel" in want) {
      assert.equal(step.next, host.input, `${title}: asks`);
      shell.bytes(shell.exports.session_flag(session) >>> 0, 1)[0] = 1;
      step = shell.resume(session);
      assert.equal(step.value.cancelled, true, title);
    } else if ("answer" in want) {
      assert.equal(step.next, host.call, `${title}: calls`);
      assert.deepEqual({ ...step.value, ...want.call }, step.value, title);
      let given = Buffer.from(step.bytes);
      for (let more = step.value.more; more;) {
        const { bytes } = shell.pull(session, step.value.id);
        given = Buffer.concat([given, bytes]);
        more = bytes.length > 0;
      }
      assert.equal(`${given}`, want.given, title);
      shell.answer(session, step.value.id, 0, encoder.encode(want.answer));
      step = shell.resume(session);
    } else if ("status" in want) {
      assert.equal(step.next, host.finished, `${title}: has finished`);
      assert.equal(step.value.status, want.status, title);
      assert.equal(`${Buffer.from(step.bytes)}`, want.unread ?? "", title);
    }
  }
  assert.equal(output(), "", title);
  shell.free(session);
}

const input = (text) => ({ input: text });
const end = { end: true };
/** The time that the run waits for is over. */
const later = { later: true };
const cancel = { cancel: true };
const answer = (stdout, call, given = "") => ({ answer: stdout, call, given });
const ended = { status: 0 };

fs.writeFileSync(path.join(root, "work/file"), "in\nfile\n");

// Lines, and what is left of them.
check("read x; echo got $x", "", input("a\n"), "got a\n", ended);
check("read x; echo got $x", input("a b"), "", input("c\n"), "got a bc\n", ended);
check("read x; echo got $x", input("a\nb\n"), "got a\n", { status: 0, unread: "b\n" });
check("read x; echo $? $x", input("part"), end, "1 part\n", ended);
check("read a; read b; cat", input("1\n2\n3\n"), "3\n", input("4\n"), "4\n", end, ended);
check("echo who; read x; echo hi $x", "who\n", input("me\n"), "hi me\n", ended);
check("echo who && read x && echo hi $x", "who\n", input("me\n"), "hi me\n", ended);
check("{ echo who; read x; }; echo hi $x", "who\n", input("me\n"), "hi me\n", ended);
check("if true; then echo who; read x; fi; echo $x", "who\n", input("me\n"), "me\n", ended);
check("f() { echo who; read $1; }; f x; echo $x", "who\n", input("me\n"), "me\n", ended);
check("(echo who; read x; echo $x); read y; echo $y", "who\n", input("a\nb\n"), "a\nb\n", ended);
check("x=$(read y; echo $y); read z; echo $x $z", input("a\n"), "", input("b\n"), "a b\n", ended);
check("read -n 2 x; read -d : y; echo $x,$y", input("ab"), input("c\nd:"), "ab,c d\n", ended);
check("read -p 'name? ' x; echo $x", "[name? ]", input("me\n"), "me\n", ended);
check("command read x; builtin read y; echo $x$y", input("a\n"), input("b\n"), "ab\n", ended);
check("eval 'read x'; echo $x", input("a\n"), "a\n", ended);
check("bash -c 'read x; echo $x'; read y; echo $y", input("a\nb\n"), "a\nb\n", ended);
check(
  "while read x; do echo got $x; done; echo end",
  input("a\n"),
  "got a\n",
  input("b\nc\n"),
  "got b\ngot c\n",
  end,
  "end\n",
  ended,
);
check("while read x; do echo $x; done | cat", input("a\n"), "a\n", end, ended);
check(
  "select x in p q; do echo $x; break; done",
  "[1) p\n2) q\n#? ]",
  input("2\n"),
  "q\n",
  ended,
);
check("mapfile -t x; echo ${#x[@]}", input("a\nb\n"), end, "2\n", ended);

// Filters.
check("cat; echo end", input("a\n"), "a\n", input("b"), "b", end, "end\n", ended);
check("echo first; cat", "first\n", input("a\n"), "a\n", end, ended);
check("cat - file", input("a\n"), end, "a\nin\nfile\n", ended);
check("cat /dev/stdin", input("a\n"), end, "a\n", ended);
check("cat > copy; cat copy", input("a\n"), end, "a\n", ended);
check("x=$(cat); echo -$x-", input("a\n"), input("b\n"), end, "-a b-\n", ended);
check("grep a", input("abc\nx\n"), "abc\n", input("b\n"), "", end, ended);
check("grep -c x; echo $?", input("x\n"), input("y\n"), end, "1\n0\n", ended);
check("grep -q b; echo $?; read x; echo $x", input("a\n"), input("b\n"), "0\n", end, "\n", ended);
check(
  "grep x - nothing; echo $?",
  input("x\n"),
  "(standard input):x\n",
  end,
  "[grep: nothing: No such file or directory\n]2\n",
  ended,
);
check("tr a b", input("a\n"), "b\n", end, ended);
check("sort -k 2", input("b 2\na 1\n"), input("c 0\n"), end, "c 0\na 1\nb 2\n", ended);
check("head -1; read x; echo $x", input("1\n2\n3\n"), "1\n2\n", { status: 0, unread: "3\n" });
check("head -c 1; cat", input("123"), "123", end, ended);
check("sed s/a/b/", input("a\n"), end, "b\n", ended);
check("awk '{ print $2 }'", input("a b\n"), end, "b\n", ended);
check("wc -l", input("a\n"), end, "1\n", ended);
check("xargs echo -", input("a b\n"), end, "- a b\n", ended);
check("tee copy", input("a\n"), end, "a\n", ended);
check("jq .a", input('{"a": 1}'), end, "1\n", ended);
check("md5sum", end, "d41d8cd98f00b204e9800998ecf8427e  -\n", ended);
check("bash", input("echo in bash\n"), end, "in bash\n", ended);
check("timeout 9 cat", input("a\n"), "a\n", end, ended);
check("env A=1 sort", input("a\n"), end, "a\n", ended);
check("diff - file", input("in\nfile\n"), end, ended);

// Who does not read, and who has another input.
check("ls", "copy\nfile\n", ended);
check("ls | cat", "copy\nfile\n", ended);
check("cat file", "in\nfile\n", ended);
check("grep in file; grep -r in file", "in\nin\n", ended);
check("sort file; sed -n 1p file; wc -l file", "file\nin\nin\n2 file\n", ended);
check("awk 'BEGIN { print \"}\" ~ /[}]/ }'; jq -n 1", "1\n1\n", ended);
check("mkdir d; rmdir d; echo x > f; rm f; cp file f; mv f g; rm g", ended);
check("sort < file; cat <<< here; cat < /dev/null; cat <&-", "file\nin\nhere\n", ended);
check("echo a | { cat; }; echo b | sort", "a\nb\n", ended);
check("while read x; do echo $x; done < file", "in\nfile\n", ended);
check("sort() { echo mine; }; sort", "mine\n", ended);
check("exec < file; read x; echo $x; cat", "in\nfile\n", ended);
check("cat & read x < file; wait; echo $x", "in\n", ended);
check("bash -c 'echo $0' name; echo 'echo $1' > s; bash s arg; rm s", "name\narg\n", ended);
check("xargs -a file", "in file\n", ended);
check("for x in 1 2; do :; done; [ -e file ]; test -n x; printf %s a", "a", ended);
check("read -u 3 x 2> /dev/null; echo $?", "1\n", ended);

// The table of options.
const reading = `cut -d , -f 1; tail -n 1; uniq -c; tar tf -; tar -x -f - -C /tmp; base64 -d; gunzip
  paste -d , - file; comm - file; nl -w 2; rev; tac; grep -e x -e y; grep -A 1 x; egrep x; rg x -
  sed -n -e p; awk -F : -v x=1 1; awk 'BEGIN { x = 1 } END { print x }'; awk 1 x=1; sort -o out -t ,
  head -n 2 -; wc; tr -d x; xargs -n 1 true; fold -w 9; expand -t 2; column -t -s ,; od -A x -c
  xxd -l 2; hexdump -n 2; strings -n 2; split -l 9 - x; shuf -n 1; tsort; gzip -c; zcat; bc -l
  bash -s x; sh -e; jq -r --arg x y .; jq -n input; yq .; sha256sum; cksum -; mapfile; cmp file
  join file -; diff file -; patch -p 1; tee -a copy; numfmt --to=si; envsubst; dd status=none`;
const silent = `cut -d , -f 1 file; tail -n 1 file; uniq -c file; tar cf t file; tar tf t; gzip -k t
  paste -d , file file; comm file file; nl -w 2 file; rev file; tac file; grep -A 1 x file; rg x
  sed -i.old s/x/y/ file; awk -F : -v x=1 1 file; awk 'function f(x) { return x } BEGIN { f(1) }'
  sort -o out -t , -k 2 file; head -n 2 file; wc -l file; xargs -a file true; fold -w 9 file; find
  column -t -s , file; od -A x -c file; xxd -l 2 file; strings -n 2 file; shuf -i 1-2; shuf -e a b
  bash -c :; bash -euo pipefail -c :; jq -n 1; jq -r . /dev/null; sha256sum file; cmp file file
  diff file file; cat --help; sort --version; dd if=file of=out; date; seq 2; touch x; chmod 600 x
  rm x; grep; sed; awk; mv out x; type sort; command -v cat; stat file; cd -; base64 -w 0 file
  numfmt 1; factor 6; echo - /dev/stdin; du; env; which cat; ln -s file l; realpath l; cp file y`;
for (const [scripts, asks] of [[reading, true], [silent, false]]) {
  for (const script of scripts.split(/[;\n]/)) {
    const session = shell.session({ cwd: "/work", env: { HOME: "/", OLDPWD: "/work" } });
    const { next } = shell.run(session, { script, live: true });
    assert.equal(next, asks ? host.input : host.finished, script.trim());
    shell.free(session);
  }
}
output();

// Pipelines.
check("cat | head -1", input("a\n"), "a\n", ended);
check("cat | head -1; read x; echo $x", input("a\n"), "a\n", input("b\n"), "b\n", ended);
check("cat | cat", input("a\n"), "a\n", input("b\n"), "b\n", end, ended);
check("cat | grep b | tr b c", input("a\nb\n"), "c\n", end, ended);
check("sort | head -1", input("b\na\n"), end, "a\n", ended);
check("{ read x; echo $x; } | cat; read y; echo $y", input("1\n2\n"), "1\n2\n", ended);
check("cat | while read x; do echo got $x; done", input("a\n"), "got a\n", end, ended);

// Time.
check("read -t 0.05 x; echo $? -$x-", later, "142 --\n", ended);
check("read -t 0.05 x; echo $? $x", input("part"), later, "142 part\n", ended);
check("read -t 9 x; echo $? $x", input("a\n"), "0 a\n", ended);
check("read -t 0; echo $?; read x; read -t 0; echo $?", "1\n", input("a\nb\n"), "0\n", {
  status: 0,
  unread: "b\n",
});
check("timeout 0.05 cat; echo $?; cat", later, "124\n", input("a\n"), "a\n", end, ended);
check("timeout 0.05 cat | cat; read x; echo $x", later, input("a\n"), "a\n", ended);
check(
  "(sleep 0.05; echo slept) & read x; echo $x; wait",
  later,
  input("a\n"),
  "a\nslept\n",
  ended,
);
check("sleep 0.05 & read x; echo $x; wait", input("a\n"), "a\n", ended);
check("sleep 0.05; read x; echo $x", input("a\n"), "a\n", ended);
check("read x; sleep 0.05; echo $x", input("a\n"), "a\n", ended);

// Cancelling.
const cancelled = { status: 130 };
for (const script of ["read x; echo no", "x=$(sort)", "read -t 9 x; echo no"]) {
  check(script, input("part"), cancel, { ...cancelled, unread: "part" });
}
check("cat; echo no", input("part"), "part", cancel, cancelled);
check("cat | cat; echo no", input("part"), "part", cancel, cancelled);
check("while read x; do echo $x; done; echo no", input("a\n"), "a\n", cancel, cancelled);

// Calls of the host.
check("python -c 1; read x; echo $x", answer("out\n", { piped: false, live: true }), "out\n",
  input("a\n"), "a\n", ended);
check("read x; python; cat", input("1\n2\n"), answer("", { live: true }, "2\n"), end, ended);
check("x=$(python); (python)", answer("", { live: true }), answer("", { live: true }), ended);
check("python | sort", answer("b\na\n", { live: true }), "a\nb\n", ended);
check("python < file", answer("", { piped: true, live: false }, "in\nfile\n"), ended);
check("cat file | python", answer("", { piped: true, live: false }, "in\nfile\n"), ended);
check("python & wait", answer("", { piped: false, live: false }), ended);

// A beginning, other runs, and no live input.
const session = shell.session({ cwd: "/work" });
let step = shell.run(session, { script: "read x; cat", live: true }, encoder.encode("1\n2\n"));
assert.equal(step.next, host.input);
assert.equal(step.value, null);
assert.equal(output(), "2\n");
shell.input(session, encoder.encode("3\n"));
shell.input(session);
step = shell.resume(session);
assert.deepEqual([step.next, step.value.status, output()], [host.finished, 0, "3\n"]);
step = shell.run(session, { script: "read x; read y; echo $x$?; cat" }, encoder.encode("1\n"));
assert.deepEqual([step.next, output()], [host.finished, "11\n"]);
step = shell.run(session, { script: "cat; python; echo $?" });
assert.equal(step.next, host.finished);
assert.match(output(), /python: command not found.*127/s);
shell.input(session, encoder.encode("unheard"));
const { status } = shell.finish(session, { script: "cat", live: true }, undefined, undefined, () =>
  undefined);
assert.equal(status, 0);
assert.equal(output(), "");
shell.free(session);

fs.rmSync(root, { recursive: true });
console.log("live input: as expected");
