//! The entry point of the `isolet` command.

mod cli;

fn main() -> std::process::ExitCode {
    isolet::init();
    cli::main()
}
