//! A23, E13: the host truncates and charges a guest's descriptions of itself, whatever the guest's
//! glue does.

use isolet::{Limits, Value};

use crate::util::{eval, exec, raised, sandbox, session};

/// Makes the guest's glue truncate nothing.
const UNCUT: &str = "
import gc
gc.unfreeze()
for found in gc.get_objects():
    if type(found) is dict:
        for name in ('MAX_TEXT', 'MAX_REPR'):
            if name in found and '__name__' in found:
                found[name] = 10**9
        if 'capped_repr' in found and '__name__' in found:
            found['capped_repr'] = lambda value, limit, *_: repr(value)
";

/// A23: the host itself truncates an exception's texts, a `repr` and names.
#[tokio::test]
async fn texts_that_the_guest_does_not_cut_are_cut_by_the_host() {
    let mut session = session().await;
    exec(&mut session, UNCUT).await;
    let chars = |text: &str| text.chars().count();
    let most = Limits::EXCEPTION_CHARS as usize + 64;
    let code = "raise type('E' * 1_000_000, (Exception,), {})('m' * 5_000_000, [0] * 1_000_000)";
    let exception = raised(&mut session, code).await;
    assert!(chars(&exception.message) <= most, "{}", exception.message.len());
    assert!(exception.message.starts_with("[... "), "{:.40}", exception.message);
    assert!(chars(&exception.traceback) <= most, "{}", exception.traceback.len());
    assert!(exception.type_name == format!("{}...", "E".repeat(Limits::NAME_CHARS as usize)));
    assert_eq!(exception.args_json, None);
    let code = "globals()['n' * 10_000] = y = 'v' * 1_000_000\ny + 'w' * 1_000_000";
    let execution = exec(&mut session, code).await;
    assert_eq!(chars(execution.repr().unwrap()), Limits::REPR_CHARS as usize + 3);
    for variable in execution.locals() {
        assert!(chars(&variable.name) <= Limits::NAME_CHARS as usize + 3, "{variable:?}");
        assert!(chars(&variable.repr) <= Limits::LOCAL_REPR_CHARS as usize + 3, "{variable:?}");
    }
    assert_eq!(execution.locals().len(), 2);
    assert_eq!(eval(&mut session, "1 + 1").await, Value::Int(2));
}

/// E13: a value with a small encoding that would be large in the host's memory stays in the guest.
#[tokio::test]
async fn a_value_that_takes_too_much_of_the_hosts_memory_stays_in_the_guest() {
    let limits = Limits::default().max_value_bytes(1 << 20);
    let mut session = sandbox(limits).session().await.unwrap();
    let cases = [
        ("[None] * 500_000", "16000016"),
        ("[[]] * 100_000", "3200016"),
        ("[{}] * 100_000", "3200016"),
        ("[[None]] * 100_000", "8000016"),
        ("dict.fromkeys(range(100_000))", "6400032"),
        ("['a'] * 100_000", "6400016"),
    ];
    for (code, needed) in cases {
        let expected = format!(
            "a value that takes {needed} bytes of the host's memory cannot cross to the host, the limit is \
             1048576 bytes"
        );
        let execution = exec(&mut session, format!("x = {code}\nx")).await;
        assert_eq!(
            (execution.value(), execution.value_error()),
            (None, Some(&*expected)),
            "{code}"
        );
        assert!(execution.repr().is_some() && execution.locals().len() == 1, "{code}");
        let error = session.get("x").await.unwrap_err();
        assert_eq!((error.to_string(), error.session_survives()), (expected, true), "{code}");
    }
    let most = eval(&mut session, "[None] * 32767").await;
    assert_eq!(most.as_list().map(<[Value]>::len), Some(32767));
}
