//! The `isolet` command.

mod cli;

fn main() -> std::process::ExitCode {
    isolet::init();
    cli::main()
}
