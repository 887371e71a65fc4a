//! Tests of threads: concurrent tool calls, interrupts, deadlines, deadlocks, and what a run leaves
//! behind.

use isolet_test_support::{Scratch, isolet};

#[test]
fn a_program_waits_for_its_threads_but_not_for_daemons() {
    let scratch = Scratch::new("threads-program");
    let script = "import atexit, threading, time\natexit.register(print, 'exit')\n\
        def work():\n    time.sleep(0.05)\n    print('done')\n\
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\n\
        threading.Thread(target=work).start()\nprint('end')";
    let ran = isolet(["run", &scratch.file("program.py", script)]);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (Some(0), "end\ndone\nexit\n", ""));
    let script = "import threading\nlock = threading.Lock()\nlock.acquire()\n\
        threading.Thread(target=lock.acquire).start()\nprint('end')";
    let ran = isolet(["run", &scratch.file("stuck.py", script)]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "end\n"));
    assert!(ran.stderr.contains("RuntimeError: deadlock"), "{}", ran.stderr);
}
