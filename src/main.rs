//! The entry point of the `isolet` command.

mod cli;
mod service;

fn main() -> std::process::ExitCode {
    isolet::init();
    cli::with_enough_stack(cli::main)
}
