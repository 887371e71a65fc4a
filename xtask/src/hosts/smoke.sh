# What somebody does with isolet on a new machine: $1 says how much of it. ISOLET is the command, D
# an empty directory that this user may write to, OPTIONS options of every run. What goes wrong is
# said on standard output. Standard error is the command's.
isolet_run() { "$ISOLET" run $OPTIONS "$@"; }
fail() { echo "$*"; exit 1; }

start() {
  said=$(isolet_run -c 'print(6 * 7)') || fail "a start ended with status $?"
  [ "$said" = 42 ] || fail "a start printed '$said'"
}

# Waits, for 60 seconds at most, until a command succeeds.
wait_for() {
  for _ in $(seq 600); do
    if eval "$1" 2>/dev/null; then return 0; fi
    sleep 0.1
  done
  return 1
}

case $1 in
start) start ;;
all)
  start
  start
  bytes=$(isolet_run -c 'print("x" * 100000)' | wc -c)
  [ "$bytes" = 100001 ] || fail "$bytes bytes of output came"
  mkdir "$D/mounted"
  isolet_run --mount "$D/mounted:/rw:rw" -c 'open("/rw/a", "w").write("b")' || fail 'no file can be written'
  [ "$(cat "$D/mounted/a")" = b ] || fail 'the file that was written is not there'
  isolet_run --timeout 300ms -c 'while True: pass' 2>/dev/null
  status=$?
  [ $status = 3 ] || fail "a run that takes too long ended with status $status"
  "$ISOLET" serve --listen 127.0.0.1:0 2>"$D/node" &
  node=$!
  trap 'kill $node' EXIT
  wait_for 'grep -q http:// "$D/node"' || fail "the node did not begin: $(cat "$D/node")"
  url=$(grep -o 'http://127[0-9.:]*' "$D/node" | head -1)
  said=$(cd / && python3 -c '
import sys, urllib.request
request = urllib.request.Request(sys.argv[1] + "/v1/run", b"{\"code\": \"6 * 7\"}", {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=60).read().decode())' "$url")
  case $said in *42*) ;; *) fail "the node answered '$said', $(cat "$D/node")" ;; esac
  ;;
large-file)
  # A write beyond the limit of the process is the guest's error.
  mkdir "$D/large"
  said=$(isolet_run --mount "$D/large:/rw:rw" -c '
try: open("/rw/a", "wb").write(bytes(100_000_000))
except OSError as error: print(error.errno)') || fail "the run ended with status $?"
  [ "$said" = 27 ] || fail "a write beyond the limit gave '$said'"
  start
  ;;
fill-memory)
  isolet_run -c 'kept = []
while True: kept.append(bytearray(b"x" * 10_000_000))' ;;
closed)
  # With no standard input and output, what a program writes to files arrives.
  mkdir "$D/closed"
  isolet_run --mount "$D/closed:/rw:rw" -c 'open("/rw/a", "w").write("b")' <&- >&- || exit 1
  [ "$(cat "$D/closed/a")" = b ] || fail 'the file that was written is not there'
  ;;
node-ends)
  "$ISOLET" serve --listen 127.0.0.1:0 2>"$D/node" &
  node=$!
  wait_for 'grep -q http:// "$D/node"' || fail "the node did not begin: $(cat "$D/node")"
  kill -TERM $node
  wait_for '! kill -0 $node' || { kill -KILL $node; fail 'SIGTERM did not end the node'; }
  ;;
compute)
  isolet_run --timeout 30s -c 'while True: pass' ;;
json-on-full-disk)
  isolet_run --json -c 1 >/dev/full ;;
first-process)
  # A signal ends the first process of a container.
  unshare -pf --mount-proc --kill-child "$ISOLET" run --timeout none -c '
print("running", flush=True)
while True: pass' >"$D/said" &
  outer=$!
  wait_for 'grep -q running "$D/said"' || fail 'it did not begin'
  kill -TERM $(cat /proc/$outer/task/$outer/children)
  wait_for '! kill -0 $outer' || { kill -KILL $outer; fail 'SIGTERM did not end it'; }
  ;;
esac
