//! Tests of images whose packages are trusted no further than guests: those that `--with` makes by
//! itself, and those of `EngineBuilder::confine_preloaded`.

use isolet::{ErrorKind, Isolation, Permissions, Sandbox};

use crate::util::{Scratch, eval, isolation, wheel};

#[tokio::test]
async fn sessions_on_threads_do_not_start_from_what_workers_have_made() {
    let work = Scratch::new("guest-image-threads");
    wheel(work.path(), "telling", "1", "SAW = [1]\n");
    let sources = Permissions::none().wheels(work.path()).offline_packages();
    let sources = sources.package_cache(work.path().join("packages"));
    let builder = crate::util::engine_builder().images(work.path()).packages_from(&sources);
    let builder = builder.preload("telling").unwrap().confine_preloaded();
    let engine = builder.build().unwrap();
    assert!(engine.image_path().is_some());
    let code = "import sys; ['telling' in sys.modules, sys.modules['telling'].SAW]";
    for _ in 0..3 {
        let mut session = Sandbox::builder(&engine).build().unwrap().session().await.unwrap();
        assert_eq!(eval(&mut session, code).await.to_string(), "[True, [1]]");
    }
    let on_thread = Sandbox::builder(&engine).isolation(Isolation::Thread).build().unwrap();
    match (isolation(), on_thread.session().await) {
        (Isolation::Process, session) => {
            let error = session.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{error}");
            assert!(error.to_string().contains("confined to workers"), "{error}");
        }
        (_, session) => assert!(session.is_ok()),
    }
}
