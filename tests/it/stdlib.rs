//! Tests of parts of the standard library: time zones, local time, modules that Pyodide omits.

use isolet::{Outcome, Permissions, Session, Stdin, Value};

use crate::util::{builder, eval, exec, raised, session};

async fn text(session: &mut Session, code: &str) -> String {
    let value = eval(session, code).await;
    value.as_str().map_or_else(|| panic!("{value:?}"), str::to_owned)
}

#[tokio::test]
async fn time_zones_are_there_from_the_start() {
    let mut session = session().await;
    let code = "from datetime import datetime\nfrom zoneinfo import ZoneInfo, available_timezones\n\
        berlin, tokyo = ZoneInfo('Europe/Berlin'), ZoneInfo('Asia/Tokyo')\n\
        when = datetime(2026, 7, 1, 12, tzinfo=berlin)\n\
        f'{when.isoformat()} {when.tzname()} {when.astimezone(tokyo).isoformat()}'";
    let expected = "2026-07-01T12:00:00+02:00 CEST 2026-07-01T19:00:00+09:00";
    assert_eq!(text(&mut session, code).await, expected);
    let known = "{'UTC', 'Europe/Berlin', 'America/New_York'} <= available_timezones()";
    assert_eq!(eval(&mut session, known).await, true.into());
    let error = raised(&mut session, "ZoneInfo('No/Where')").await;
    assert_eq!(error.type_name, "ZoneInfoNotFoundError");
}

#[tokio::test]
async fn local_time_is_utc_unless_the_guests_environment_says_otherwise() {
    let local = "import time, datetime\n\
        now = datetime.datetime.fromtimestamp(1720000000)\n\
        f'{time.tzname} {time.timezone} {now} {now.astimezone().tzname()} '\
        f'{time.strftime(\"%H:%M %Z %z\", time.localtime(0))} {time.mktime(time.localtime(1e9))}'";
    let mut session = session().await;
    let utc = "('UTC', 'UTC') 0 2024-07-03 09:46:40 UTC 00:00 UTC +0000 1000000000.0";
    assert_eq!(text(&mut session, local).await, utc);
    let permissions = Permissions::default().env("TZ", "Europe/Berlin");
    let sandbox = builder().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let berlin = "('CET', 'CEST') -3600 2024-07-03 11:46:40 CEST 01:00 CET +0100 1000000000.0";
    assert_eq!(text(&mut session, local).await, berlin);
}

#[tokio::test]
async fn tzset_follows_the_environment() {
    let mut session = session().await;
    let code = "import os, time\n\
        def local(zone):\n    os.environ['TZ'] = zone\n    time.tzset()\n    \
        summer = time.localtime(1720000000)\n    \
        return f'{time.timezone} {time.altzone} {time.daylight} {time.tzname} '\
        f'{summer.tm_hour} {summer.tm_isdst} {summer.tm_zone} {time.mktime(summer):.0f} '\
        f'{time.mktime((2024, 3, 31, 2, 30, 0, 0, 0, -1)):.0f}'";
    exec(&mut session, code).await;
    // The answers of glibc.
    let cases = [
        ("Europe/Berlin", "-3600 -7200 1 ('CET', 'CEST') 11 1 CEST 1720000000 1711848600"),
        ("Asia/Kolkata", "-19800 -19800 0 ('IST', 'IST') 15 0 IST 1720000000 1711832400"),
        ("Australia/Sydney", "-36000 -39600 1 ('AEST', 'AEDT') 19 0 AEST 1720000000 1711812600"),
        ("EST+05EDT,M4.1.0,M10.5.0", "18000 14400 1 ('EST', 'EDT') 5 1 EDT 1720000000 1711870200"),
        (":Asia/Tokyo", "-32400 -32400 0 ('JST', 'JST') 18 0 JST 1720000000 1711819800"),
        ("No/Where", "0 0 0 ('UTC', 'UTC') 9 0 UTC 1720000000 1711852200"),
    ];
    for (zone, expected) in cases {
        let code = format!("local({zone:?})");
        assert_eq!(text(&mut session, &code).await, expected, "{zone}");
    }
}

#[tokio::test]
async fn modules_that_pyodide_leaves_out_are_there() {
    let mut session = session().await;
    let code = "import dbm, dbm.dumb, dbm.sqlite3, shelve, _pydecimal, pydoc, pydoc_data.topics\n\
        from zoneinfo import _zoneinfo\n\
        with shelve.open('/tmp/shelf') as shelf: shelf['a'] = [1, 2]\n\
        with shelve.open('/tmp/shelf') as shelf: kept = dict(shelf)\n\
        with dbm.dumb.open('/tmp/dumb', 'c') as db: db['k'] = 'v'\n\
        [kept['a'], dbm.whichdb('/tmp/shelf'), dbm.whichdb('/tmp/dumb'),\n \
        str(_pydecimal.Decimal('0.1') * 3), 'if_stmt' in pydoc_data.topics.topics['if'],\n \
        str(_zoneinfo.ZoneInfo('UTC'))]";
    let shelf = Value::List(vec![1.into(), 2.into()]);
    let expected = vec![
        shelf,
        "dbm.sqlite3".into(),
        "dbm.dumb".into(),
        "0.3".into(),
        true.into(),
        "UTC".into(),
    ];
    assert_eq!(eval(&mut session, code).await, Value::List(expected));
}

#[tokio::test]
async fn what_asyncio_cannot_do_is_said_in_words_about_a_guest() {
    let mut session = session().await;
    for (call, reason) in [
        ("open_connection('example.com', 443, ssl=True)", "httpx, requests and urllib.request"),
        ("start_server(print, 'localhost', 0)", "a guest cannot be a server"),
        ("sleep(0, asyncio.get_running_loop().add_reader(0, print))", "threads and tasks"),
    ] {
        let error = raised(&mut session, format!("import asyncio; await asyncio.{call}")).await;
        assert_eq!(error.type_name, "NotImplementedError");
        assert!(error.message.contains(reason), "{}", error.message);
        assert!(!error.message.contains("browser"), "{}", error.message);
    }
}

#[tokio::test]
async fn keys_are_derived_as_openssl_does_and_scrypt_says_what_to_use() {
    let mut session = session().await;
    // RFC 7914, section 11, and RFC 6070.
    let code = "import hashlib\nd = hashlib.pbkdf2_hmac\n\
        [d('sha256', b'passwd', b'salt', 1, 64).hex()[:32], d('sha1', b'password', b'salt', 4096).hex()]";
    let expected = vec![
        "55ac046e56e3089fec1691c22544b605".into(),
        "4b007901b765489abead49d926f721d065a429c1".into(),
    ];
    assert_eq!(eval(&mut session, code).await, Value::List(expected));
    let error = raised(&mut session, "hashlib.scrypt(b'', salt=b'', n=2, r=1, p=1)").await;
    assert_eq!(error.type_name, "NotImplementedError");
    assert!(error.message.contains("use hashlib.pbkdf2_hmac()"), "{}", error.message);
    let code =
        "import time; time.thread_time() >= 0 and time.get_clock_info('thread_time').monotonic";
    assert_eq!(eval(&mut session, code).await, true.into());
}

#[tokio::test]
async fn standard_input_stays_open_after_exit() {
    let mut session = session().await;
    let first = isolet::Cell::new("line = input()\nexit()").stdin(Stdin::from_bytes("one\ntwo\n"));
    assert_eq!(*session.run(first).await.unwrap().outcome(), Outcome::Exited(0));
    let second = isolet::Cell::new("line + input()").stdin(Stdin::from_bytes("three\n"));
    assert_eq!(eval(&mut session, second).await, "onethree".into());
    assert_eq!(*session.run("quit(3)").await.unwrap().outcome(), Outcome::Exited(3));
    assert_eq!(eval(&mut session, "import sys; sys.stdin.closed").await, false.into());
}

#[tokio::test]
async fn a_device_for_cpythons_tests_that_cannot_be_read_does_not_end_the_session() {
    let mut session = session().await;
    let code = "from _testinternalcapi import emscripten_set_up_async_input_device as set_up\n\
                answers = [set_up(), set_up()]\nwith open('/dev/blah') as device:\n    \
                try: answers.append(device.readline())\n    \
                except OSError as error: answers.append(error.errno)\nanswers";
    let answers = vec![false.into(), false.into(), Value::Int(5)];
    assert_eq!(eval(&mut session, code).await, Value::List(answers));
}

#[tokio::test]
async fn no_class_of_ours_shows_a_private_name() {
    let mut session = session().await;
    let code = "import gc, asyncio, socket, threading\n\
        def kinds(base=object):\n    yield base\n    \
        for kind in type.__subclasses__(base): yield from kinds(kind)\n\
        sorted({repr(k) for k in kinds() if '_isolet_' in repr(k)})";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![]));
    assert_eq!(
        text(&mut session, "str(type(asyncio.get_event_loop()))").await,
        "<class 'isolet.Loop'>"
    );
}
