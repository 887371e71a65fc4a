//! Files with servers: of isolet itself, and of other clients.

use isolet::fuzzing::measured;

use super::{Client, Config, Environment, Origin};

/// How many times its length a file may take, and what it may take besides.
const FACTOR: usize = 1000;
const FIXED: usize = 256 << 10;
/// A variable of the environment whose value no error may show.
const SECRET: &str = "s3cr3t-value";

/// Reads the bytes as a configuration, of isolet's own and of other clients. Servers have names,
/// each one once, in order; an error names the file and shows no secret; memory is bounded by the
/// length.
pub fn mcp_config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    // The fuzzer has seen what it is compared with. An error may show what the file itself says.
    if text.contains(SECRET) {
        return;
    }
    let variables = [("HOME", "/home/user"), ("KEY", SECRET)];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment::new(variables);
    // The other formats of clients. What is made of them is a file of isolet's own.
    for client in [Client::Codex, Client::Goose] {
        let (own, used) = measured(|| client.to_own(text));
        assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
        if let Ok(own) = own {
            assert!(own.starts_with("{\"mcpServers\":{"), "{own:?}");
        }
    }
    for origin in [Origin::Own, Origin::Imported] {
        let (config, used) = measured(|| Config::parse(text, "file.json", &environment, origin));
        assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
        match config {
            Ok(config) => {
                let names: Vec<&str> = config.servers().iter().map(|it| it.name()).collect();
                assert!(names.is_sorted_by(|one, next| one < next), "{names:?}");
                assert!(!names.contains(&""));
                assert!(!format!("{config:?}").contains(SECRET), "it shows a secret");
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("`file.json`: "), "{text:?}");
                assert!(!text.contains(SECRET), "{text:?}");
            }
        }
    }
}
