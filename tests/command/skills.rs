//! Tests of `isolet skill`.

use std::fs;

use isolet_test_support::{Scratch, isolet, root, skills};
use serde_json::{Value, json};

/// Those with packages are among the tests with numpy and others.
#[test]
fn scripts_of_skills_without_packages_do_what_people_s_do() {
    let cases: Vec<_> = skills::cases().into_iter().filter(|c| c.packages.is_empty()).collect();
    assert!(cases.len() >= 10);
    let wrong: Vec<_> = cases.iter().filter_map(|case| case.run(&[]).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_skill_s_needs_are_found_by_reading_its_scripts() {
    let check = |skill: &str, options: &[&str]| {
        let directory = root().join("tests/skills").join(skill).display().to_string();
        let words = [&["skill", "check", "--json", directory.as_str()], options].concat();
        let ran = isolet(words);
        let needs: Value = serde_json::from_str(&ran.stdout).unwrap();
        (ran.code, needs)
    };
    let (code, needs) = check("log-analysis", &[]);
    assert_eq!(code, Some(0), "{needs}");
    let commands = &needs["scripts"]["scripts/report.sh"]["commands"];
    for name in ["awk", "sort", "uniq", "zcat"] {
        assert_eq!(commands[name], true, "{name}: {commands}");
    }
    let (code, needs) = check("chart", &[]);
    assert_eq!(code, Some(1));
    let packages = &needs["scripts"]["scripts/plot.py"]["packages"];
    assert_eq!(packages, &json!({"matplotlib": false}));
    // A module beside a script is no package.
    let (_, needs) = check("docx", &[]);
    assert_eq!(needs["scripts"]["scripts/fill.py"]["packages"], json!({"docx": false}));
}

/// Writes a skill of one script.
fn skill(scratch: &Scratch, fields: &str, name: &str, script: &str) -> String {
    let directory = scratch.path().join("probe");
    fs::create_dir_all(directory.join("scripts")).unwrap();
    let text = format!("---\nname: probe\ndescription: A probe.\n{fields}---\n");
    fs::write(directory.join("SKILL.md"), text).unwrap();
    fs::write(directory.join("scripts").join(name), script).unwrap();
    directory.display().to_string()
}

#[test]
fn commands_that_are_not_there_and_code_that_cannot_be_read_are_found() {
    let scratch = Scratch::new("skill-needs");
    let script = "#!/bin/bash\n# ghost1\nset -e\nf() { git status; }\nx=$(ffmpeg -i \"$(gcc a)\")\n\
                  cat <<E\nghost2\nE\nif pandoc -v; then echo ghost3; fi\ncase $1 in a) f;; esac\n\
                  if ((ghost4)); then a=(ghost5 ghost6); fi; for ((i=0;i<3;i++)); do :; done\n\
                  case $2 in\n  ghost7|ghost8) f ;;\n  (ghost9) g ;;\n  *) podman;; esac\n";
    let directory = skill(&scratch, "", "a.sh", script);
    let python = "import os, subprocess\nsubprocess.run(['docker', 'ps'])\nos.system('wc -l | rg')";
    fs::write(format!("{directory}/scripts/b.py"), python).unwrap();
    fs::write(format!("{directory}/scripts/common.sh"), "g() {\n  echo\n}\n").unwrap();
    fs::write(format!("{directory}/scripts/c.py"), "def").unwrap();
    let ran = isolet(["skill", "check", "--json", directory.as_str()]);
    let needs: Value = serde_json::from_str(&ran.stdout).unwrap();
    let missing = |script: &str| {
        let commands = needs["scripts"][script]["commands"].as_object().unwrap();
        let missing = commands.iter().filter(|(_, is_there)| **is_there == json!(false));
        missing.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(missing("scripts/a.sh"), "ffmpeg gcc git pandoc podman", "{needs}");
    assert_eq!(missing("scripts/b.py"), "docker");
    assert!(needs["scripts"]["scripts/c.py"]["error"].is_string());
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_script_changes_no_skill_and_reads_nothing_beside_it() {
    let scratch = Scratch::new("skill-canary");
    let canary = scratch.file("canary.txt", "canary");
    let script = "import os, sys\n\
                  for path in ['/skills/probe/SKILL.md', '/skills/probe/new']:\n    \
                  try: open(path, 'w')\n    except OSError as error: print(error.errno)\n\
                  print(os.path.exists(sys.argv[1]), os.listdir('/skills'), os.getcwd())";
    let directory = skill(&scratch, "", "a.py", script);
    let ran = isolet(["skill", "run", directory.as_str(), "a.py", canary.as_str()]);
    assert_eq!(ran.stdout, "13\n13\nFalse ['probe'] /home/user\n", "{}", ran.stderr);
    let text = fs::read_to_string(format!("{directory}/SKILL.md")).unwrap();
    assert!(text.contains("A probe."));
}

#[test]
fn a_skill_has_the_network_only_if_it_asks_and_the_options_allow_it() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    let script = format!(
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://{address}/', timeout=1)\n\
         except PermissionError: print('denied')\nexcept OSError: print('allowed')"
    );
    let asks = "compatibility: Needs network access\n";
    let allow = ["--allow-net", address.as_str()];
    for (fields, options, printed) in [
        ("", &[][..], "denied"),
        (asks, &[], "denied"),
        ("", &allow, "denied"),
        (asks, &allow, "allowed"),
    ] {
        let scratch = Scratch::new("skill-network");
        let directory = skill(&scratch, fields, "a.py", &script);
        let words = [&["skill", "run"], options, &[directory.as_str()]].concat();
        let ran = isolet(words);
        assert!(ran.stdout.contains(printed), "{fields}{options:?}: {}{}", ran.stdout, ran.stderr);
        let is_noted = ran.stderr.contains("does not ask for the network");
        assert_eq!(is_noted, fields.is_empty() && !options.is_empty(), "{}", ran.stderr);
    }
}

#[test]
fn what_is_no_skill_or_no_script_is_an_error_that_says_what_there_is() {
    let scratch = Scratch::new("skill-errors");
    let directory = skill(&scratch, "", "a.py", "");
    let none = isolet(["skill", "run", directory.as_str(), "b.py"]);
    assert_eq!(none.code, Some(2));
    assert!(none.stderr.contains("has no script `b.py`; it has scripts/a.py"), "{}", none.stderr);
    fs::write(format!("{directory}/SKILL.md"), "# No front matter").unwrap();
    let wrong = isolet(["skill", "check", directory.as_str()]);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("does not begin with `---`"), "{}", wrong.stderr);
}
