//! Part C of the threat table: the environment and the secrets in it.

use isolet::{Permissions, Value};

use crate::util::{builder, eval, exec};

const CANARY: &str = "canary-9b0e41";

/// C2: changes that the guest makes to its environment stay in the guest.
#[tokio::test]
async fn the_hosts_environment_cannot_be_changed() {
    let sandbox = builder().permissions(Permissions::none().env("GIVEN", "1")).build().unwrap();
    let mut one = sandbox.session().await.unwrap();
    let code =
        "import os\nos.environ['PLANTED'] = 'x'\nos.environ['GIVEN'] = '2'\nos.putenv('RAW', 'y')";
    exec(&mut one, code).await;
    let mut two = sandbox.session().await.unwrap();
    let seen = eval(&mut two, "import os\nsorted(os.environ.items())").await;
    let pair = |name: &str, value: &str| Value::from(vec![name, value]);
    assert_eq!(seen, Value::List(vec![pair("GIVEN", "1"), pair("HOME", "/home/user")]));
    for name in ["PLANTED", "RAW", "GIVEN"] {
        #[expect(clippy::disallowed_methods, reason = "that it is absent is what is tested")]
        let value = std::env::var_os(name);
        assert_eq!(value, None, "{name}");
    }
}

/// C3: printing the permissions does not reveal the values that a guest was given.
#[test]
fn values_of_variables_are_not_shown() {
    let shown = format!("{:?}", Permissions::none().env("TOKEN", CANARY));
    assert!(shown.contains("TOKEN") && !shown.contains(CANARY), "{shown}");
}
