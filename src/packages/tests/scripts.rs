//! Tests of the metadata block of scripts.

use super::super::script::script_requirements;

fn read(source: &str) -> Result<Vec<String>, String> {
    let requirements = script_requirements(source).map_err(|error| error.to_string())?;
    Ok(requirements.iter().map(ToString::to_string).collect())
}

#[test]
fn the_dependencies_of_a_script_are_found() {
    let source = "#!/usr/bin/env python\n# /// script\n# requires-python = \">=3.11\"\n\
        # dependencies = [\n#   \"requests<3\",\n#   \"rich\",\n# ]\n#\n\
        # [tool.uv]\n# x = 1\n# ///\n\
        import requests\n";
    assert_eq!(read(source).unwrap(), ["requests<3", "rich"]);
    assert_eq!(read(&source.replace('\n', "\r\n")).unwrap(), ["requests<3", "rich"]);
}

#[test]
fn a_script_without_a_block_has_none() {
    for source in [
        "",
        "import rich\n",
        "# /// script\n# dependencies = [\"rich\"]\n",
        "# /// script\n# dependencies = [\"rich\"]\nx = 1\n# ///\n",
        "# /// script\n#dependencies = [\"rich\"]\n# ///\n",
        " # /// script\n # dependencies = [\"rich\"]\n # ///\n",
        "# /// script\n# ///\n",
        "# /// scripts\n# dependencies = [\"rich\"]\n# ///\n",
        "# /// scri pt\n# dependencies = [\"rich\"]\n# ///\n",
        "# /// script\n#\n# ///\n",
        "# /// script\n# [tool.x]\n# ///",
    ] {
        assert_eq!(read(source).unwrap(), Vec::<String>::new(), "{source}");
    }
}

#[test]
fn a_block_goes_to_the_last_end_of_its_comment_lines() {
    let source = "# /// script\n# dependencies = [\"rich\"]\n# x = '''\n# ///\n# '''\n# ///\n";
    assert_eq!(read(source).unwrap(), ["rich"]);
}

#[test]
fn a_block_of_another_kind_hides_what_is_in_it() {
    let source = "# /// other\n# /// script\n# dependencies = [\"rich\"]\n# ///\n";
    assert_eq!(read(source).unwrap(), Vec::<String>::new());
}

#[test]
fn two_blocks_are_refused() {
    let block = "# /// script\n# dependencies = []\n# ///\n";
    let told = read(&format!("{block}\nx = 1\n{block}")).unwrap_err();
    assert!(told.contains("two"), "{told}");
}

#[test]
fn a_python_that_is_not_this_one_is_refused() {
    let told = read("# /// script\n# requires-python = \"<3.14\"\n# ///\n").unwrap_err();
    assert!(told.contains("<3.14") && told.contains("3.14.2"), "{told}");
    assert!(read("# /// script\n# requires-python = \"x\"\n# ///\n").is_err());
    assert!(read("# /// script\n# requires-python = \"==3.14.*\"\n# ///\n").is_ok());
}

#[test]
fn a_dependency_that_does_not_apply_is_left_out() {
    let source = "# /// script\n# dependencies = [\"a; sys_platform == 'win32'\", \"b; \
        python_version >= '3'\"]\n# ///\n";
    assert_eq!(read(source).unwrap(), ["b"]);
}

#[test]
fn a_block_cannot_bring_an_option_a_path_or_a_url() {
    for dependency in ["--index-url=http://127.0.0.1/", "x @ file:///x", "./x", "-r x"] {
        let source = format!("# /// script\n# dependencies = [\"{dependency}\"]\n# ///\n");
        assert!(read(&source).is_err(), "{dependency}");
    }
}

#[test]
fn a_block_that_is_too_large_is_refused_before_it_is_read() {
    let block = |lines: usize| format!("# /// script\n{}# ///\n", "# x\n".repeat(lines));
    let told = read(&block((256 << 10) / 2 + 1)).unwrap_err();
    assert!(told.contains("limit 262144 bytes, has 262146"), "{told}");
    assert!(read(&block((256 << 10) / 2)).unwrap_err().contains('='), "it is read");
}

#[test]
fn beginnings_without_an_end_are_looked_at_once() {
    // A search from each of them to the end would take hours.
    let source = "# /// script\n".repeat(1_000_000);
    assert_eq!(read(&source).unwrap(), [""; 0]);
    let source = format!("# /// a\n# ///\n# /// b\n#\n\n{source}");
    assert_eq!(read(&source).unwrap(), [""; 0]);
}

#[test]
fn a_block_that_is_not_toml_is_refused() {
    for content in
        ["dependencies = [", "dependencies = \"rich\"", "dependencies = [1]", "a = 1\n# a = 2"]
    {
        assert!(read(&format!("# /// script\n# {content}\n# ///\n")).is_err(), "{content}");
    }
    let nested = format!("# /// script\n# x = {}\n# ///\n", "[".repeat(100_000));
    assert!(read(&nested).is_err());
}
