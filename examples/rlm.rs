//! A recursive language model. A model writes Python, and the Python examines a text that is too
//! long for any prompt. It asks the model about parts of the text and submits the answer.
//!
//! The model here is scripted, so that the example runs anywhere. Replace `Model` with your own.
//!
//! Run it with `cargo run --release --example rlm`.

#![expect(clippy::print_stdout, reason = "shows the loop at work")]

use std::sync::Arc;

use isolet::{Engine, Outcome, Param, Sandbox, Tool, ToolError, TypeHint, Value};
use schemars::JsonSchema;
use serde::Deserialize;

/// Asks a language model.
#[derive(Deserialize, JsonSchema)]
struct Query {
    /// What to ask, with everything it has to know.
    prompt: String,
}

/// Asks a language model many things at once.
#[derive(Deserialize, JsonSchema)]
struct Batch {
    /// What to ask, one prompt each.
    prompts: Vec<String>,
}

struct Model;

impl Model {
    /// Answers a sub-question: here, whether a chapter mentions the treasure.
    async fn answer(&self, prompt: &str) -> Result<String, ToolError> {
        // A real model takes some time, during which the other calls of the batch make progress.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Ok(prompt.split_once("treasure lies ").map_or("no".to_owned(), |(_, place)| {
            place.split('.').next().unwrap_or_default().to_owned()
        }))
    }
}

/// Writes the next piece of code, based on the result of the last one.
fn write_code(turn: usize, seen: &str) -> &'static str {
    match turn {
        0 => "print(len(context), context[:60])",
        1 => {
            "chapters = context.split('\\n\\n')\n\
             asked = [f'Where is the treasure? Say no if unknown.\\n{c}' for c in chapters]\n\
             answers = llm_query_batched(asked)\n\
             found = [a for a in answers if a != 'no']\n\
             print(len(chapters), found)"
        }
        // A model makes mistakes. It sees the exception and tries again.
        2 => "SUBMIT(place=found)",
        _ => {
            assert_eq!(seen, "TypeError: SUBMIT() argument 'place' must be str, not list");
            "SUBMIT(place=found[0], confidence=llm_query(prompt='Are you sure?') and 0.9)"
        }
    }
}

fn main() -> Result<(), isolet::Error> {
    isolet::init();
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), isolet::Error> {
    let model = Arc::new(Model);
    let one = Arc::clone(&model);
    let llm_query = Tool::from_fn("llm_query", move |query: Query, _| {
        let model = Arc::clone(&one);
        async move { model.answer(&query.prompt).await }
    });
    let many = Arc::clone(&model);
    let llm_query_batched = Tool::from_fn("llm_query_batched", move |batch: Batch, cx| {
        let model = Arc::clone(&many);
        async move {
            cx.log(format!("{} prompts", batch.prompts.len()));
            let answers = batch.prompts.iter().map(|prompt| model.answer(prompt));
            futures_util::future::try_join_all(answers).await
        }
    });
    println!("tools: {}, {}", llm_query.spec(), llm_query_batched.spec());

    let sandbox = Sandbox::builder(&Engine::new()?)
        .tool(llm_query)
        .tool(llm_query_batched)
        .submit([
            Param::new("place").hint(TypeHint::Str),
            Param::new("confidence").hint(TypeHint::Float).default_value(1.0),
        ])
        .build()?;
    let mut session = sandbox.session().await?;
    session.set("context", book()).await?;

    let mut seen = String::new();
    for turn in 0..10 {
        let code = write_code(turn, &seen);
        println!("--- turn {turn}\n{code}");
        let execution = session.run(code).await?;
        println!(">>> {}{}", execution.stdout(), execution.stderr());
        match execution.outcome() {
            Outcome::Submitted(answer) => {
                println!("answer: {answer}");
                assert_eq!(answer.get("place"), Some(&Value::from("under the old lighthouse")));
                return Ok(());
            }
            Outcome::Raised(exception) => {
                println!("!!! {exception}");
                seen = exception.to_string();
            }
            _ => execution.stdout().clone_into(&mut seen),
        }
    }
    panic!("the model gave no answer in ten turns");
}

/// Four hundred chapters, more than two megabytes.
fn book() -> String {
    let mut chapters = vec!["The sea was grey and the wind was cold. ".repeat(140); 400];
    chapters[271].push_str("The treasure lies under the old lighthouse. Nobody knew.");
    chapters.join("\n\n")
}
