//! Tests with programs, and with a server on a socket of this machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::Llm;
use isolet::ToolError;
use isolet::Value;
use isolet::internals::testing;

/// More than any test takes.
const LONGEST: Duration = Duration::from_mins(1);

fn arguments(prompt: &str, schema: Option<&str>) -> Value {
    let mut arguments = vec![("prompt".into(), prompt.into())];
    if let Some(kind) = schema {
        arguments.push(("schema".into(), Value::Dict(vec![("type".into(), kind.into())])));
    }
    Value::Dict(arguments)
}

/// Calls the function in this run of a session.
async fn ask(llm: &Llm, prompt: &str, run: u64) -> Result<Value, ToolError> {
    testing::call(&llm.tool(), arguments(prompt, None), (1, run)).await
}

/// Runs a script of the shell as a model.
fn shell(script: &str) -> Llm {
    Llm::command("sh", ["-c", script])
}

/// A server that gives each of these responses once: the head's lines, and the body. Returns its
/// URL, and the requests: heads and bodies.
fn server(responses: Vec<(&'static str, String)>) -> (String, mpsc::Receiver<(String, Json)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        for (head, body) in responses {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LONGEST)).unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut asked = String::new();
            while !asked.ends_with("\r\n\r\n") {
                assert_ne!(reader.read_line(&mut asked).unwrap(), 0);
            }
            let length = asked.to_lowercase();
            let length = length.split("content-length: ").nth(1).unwrap();
            let mut content = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
            reader.read_exact(&mut content).unwrap();
            sender.send((asked, serde_json::from_slice(&content).unwrap())).unwrap();
            let response = format!(
                "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    (url, requests)
}

fn completion(content: &str, tokens: u64) -> (&'static str, String) {
    let message = json!({"message": {"role": "assistant", "content": content}});
    let body = json!({"choices": [message], "usage": {"total_tokens": tokens}});
    ("200 OK", body.to_string())
}

#[tokio::test]
async fn a_program_gets_the_prompt_and_its_output_is_the_answer() {
    assert_eq!(ask(&shell("tr a-z A-Z"), "what?", 1).await.unwrap(), "WHAT?".into());
    // It need not read the prompt, which may be longer than a pipe holds.
    let long = "x".repeat(1 << 20);
    assert_eq!(ask(&shell("echo read nothing"), &long, 1).await.unwrap(), "read nothing".into());
    let llm = Llm::from_text("sh -c 'echo \"$0\"' 'two words'").unwrap();
    assert_eq!(ask(&llm, "", 1).await.unwrap(), "two words".into());
}

#[tokio::test]
async fn what_a_program_does_wrong_is_an_exception() {
    let error = ask(&shell("yes bad | head -n 100000 >&2; exit 3"), "", 1).await.unwrap_err();
    let message = error.message();
    assert!(message.contains("`sh` ended with exit status: 3: bad\nbad"), "{message}");
    assert!(message.len() < 1_200, "{}", message.len());
    let error = ask(&shell("yes"), "", 1).await.unwrap_err();
    assert_eq!(error.message(), "the language model's answer has more than 4194304 bytes");
    let missing = Llm::command("/nonexistent/model", ["x"]);
    let error = ask(&missing, "", 1).await.unwrap_err();
    assert!(error.message().contains("`/nonexistent/model` cannot be started"), "{error}");
}

#[tokio::test]
async fn a_program_that_takes_too_long_ends_with_all_that_it_has_started() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let script = format!("exec 3>{0}; (sleep 1000) & echo started >&3; wait", fifo.display());
    // The end of the pipe comes when nobody has it open for writing any more.
    let path = fifo.clone();
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || sender.send(std::fs::read_to_string(path)));
    let llm = shell(&script).timeout(Duration::from_secs(1));
    let error = ask(&llm, "", 1).await.unwrap_err();
    assert_eq!(error.type_name(), "TimeoutError");
    assert_eq!(error.message(), "the language model did not answer within 1 s");
    assert_eq!(seen.recv_timeout(LONGEST).unwrap().unwrap(), "started\n");
}

#[tokio::test]
async fn a_server_is_asked_by_its_api_with_the_key_that_the_guest_does_not_see() {
    let (url, requests) = server(vec![completion("the key is sk-canary-1", 9)]);
    let llm = Llm::from_text(&url).unwrap().model("tiny").key("sk-canary-1");
    assert_eq!(ask(&llm, "hello", 1).await.unwrap(), "the key is [secret]".into());
    let (head, body) = requests.recv_timeout(LONGEST).unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer sk-canary-1\r\n"), "{head}");
    let expected = json!({"model": "tiny", "messages": [{"role": "user", "content": "hello"}]});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn with_a_schema_the_answer_is_a_value() {
    let many = format!("[{}0]", "0,".repeat(100_000));
    let (url, requests) = server(vec![
        completion("```json\n{\"a\": [1]}\n```", 9),
        completion("no", 1),
        completion(&many, 1),
    ]);
    let tool = Llm::url(&url).unwrap().tool();
    let call = || testing::call(&tool, arguments("p", Some("object")), (1, 1));
    let expected = Value::Dict(vec![("a".into(), Value::List(vec![Value::Int(1)]))]);
    assert_eq!(call().await.unwrap(), expected);
    let (_, body) = requests.recv_timeout(LONGEST).unwrap();
    let format = &body["response_format"];
    assert_eq!(format["json_schema"]["schema"], json!({"type": "object"}), "{body}");
    let error = call().await.unwrap_err();
    assert_eq!(error.type_name(), "ValueError");
    assert!(error.message().starts_with("the answer is no JSON ("), "{error}");
    let error = call().await.unwrap_err();
    assert_eq!(error.message(), "the answer has 100002 values of JSON, the limit is 100000");
    let tool = shell("cat").tool();
    let error = testing::call(&tool, arguments("p", Some("array")), (1, 1)).await.unwrap_err();
    assert!(error.message().contains("Answer with JSON only"), "{error}");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
    let busy = || ("429 Too Many Requests\r\nretry-after: 0", "slow down".to_owned());
    let (url, requests) = server(vec![busy(), busy(), completion("at last", 1)]);
    assert_eq!(ask(&Llm::url(&url).unwrap(), "p", 1).await.unwrap(), "at last".into());
    assert_eq!(requests.iter().count(), 3);
    let (url, requests) = server(vec![busy(), busy(), busy()]);
    let error = ask(&Llm::url(&url).unwrap(), "p", 1).await.unwrap_err();
    let message = error.message();
    assert!(message.contains("answered HTTP 429 Too Many Requests: slow down"), "{message}");
    assert_eq!(requests.iter().count(), 3);
    let wrong = ("401 Unauthorized", "the key sk-canary-2 is wrong".to_owned());
    let (url, requests) = server(vec![wrong]);
    let llm = Llm::url(&url).unwrap().key("sk-canary-2");
    let error = ask(&llm, "p", 1).await.unwrap_err();
    assert!(error.message().ends_with("the key [secret] is wrong"), "{error}");
    assert_eq!(requests.iter().count(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_or_talks_nonsense_is_an_exception() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let llm = Llm::url(&format!("http://{gone}")).unwrap();
    let error = ask(&llm, "p", 1).await.unwrap_err();
    assert_eq!(error.type_name(), "ConnectionError");
    let message = error.message();
    assert!(message.starts_with(&format!("the language model's server `http://{gone}` cannot be")));
    assert!(message.ends_with("reached: connection refused"), "{message}");
    let (url, _requests) =
        server(vec![("200 OK", "[]".to_owned()), ("200 OK", "{\"choices\": []}".to_owned())]);
    let llm = Llm::url(&url).unwrap();
    let error = ask(&llm, "p", 1).await.unwrap_err();
    assert!(error.message().contains("answered no completion"), "{error}");
    let error = ask(&llm, "p", 1).await.unwrap_err();
    assert!(error.message().contains("answered without a text"), "{error}");
}

#[tokio::test]
async fn a_response_that_is_too_long_is_an_exception() {
    let (url, _requests) = server(vec![completion(&"x".repeat(8 << 20), 1)]);
    let error = ask(&Llm::url(&url).unwrap(), "p", 1).await.unwrap_err();
    assert_eq!(error.message(), "the language model's response has more than 8388608 bytes");
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let to =
        format!("307 Temporary Redirect\r\nlocation: http://{}", elsewhere.local_addr().unwrap());
    let (url, _requests) = server(vec![(to.leak(), "go there".to_owned())]);
    let llm = Llm::url(&url).unwrap().key("sk-canary-3");
    let error = ask(&llm, "p", 1).await.unwrap_err();
    let message = error.message();
    assert!(message.contains("answered HTTP 307 Temporary Redirect: go there"), "{message}");
    assert!(elsewhere.accept().is_err());
}

#[tokio::test]
async fn a_server_that_takes_too_long_is_hung_up_on() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, seen) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = Vec::new();
        // It ends when the client hangs up.
        let _ = stream.read_to_end(&mut asked);
        sender.send(asked)
    });
    let llm = Llm::url(&url).unwrap().timeout(Duration::from_secs(1));
    let error = ask(&llm, "p", 1).await.unwrap_err();
    assert_eq!(error.message(), "the language model did not answer within 1 s");
    assert!(seen.recv_timeout(LONGEST).unwrap().starts_with(b"POST /chat/completions "));
}

#[tokio::test]
async fn each_run_has_a_budget_of_its_own() {
    let llm = shell("cat").max_calls(2);
    let tool = llm.tool();
    let ask = async |run| testing::call(&tool, arguments("p", None), (1, run)).await;
    assert!(ask(1).await.is_ok() && ask(1).await.is_ok());
    let error = ask(1).await.unwrap_err();
    assert!(
        error.message().starts_with("this run has asked the language model 2 times"),
        "{error}"
    );
    assert!(ask(2).await.is_ok());
}

#[tokio::test]
async fn tokens_count_as_the_server_says_and_otherwise_by_length() {
    let (url, _requests) = server(vec![completion("a", 90), completion("b", 5)]);
    let tool = Llm::url(&url).unwrap().max_tokens(100).tool();
    let ask = async |prompt: &str| testing::call(&tool, arguments(prompt, None), (1, 1)).await;
    assert!(ask("four").await.is_ok());
    let error = ask(&"x".repeat(44)).await.unwrap_err();
    assert!(error.message().contains("has spent 101 tokens on the language model"), "{error}");
    assert!(ask("four").await.is_ok());
    let tool = shell("cat").max_tokens(10).tool();
    let ask = async |prompt: &str| testing::call(&tool, arguments(prompt, None), (1, 1)).await;
    assert!(ask("0123456789abcdef").await.is_ok());
    let error = ask("0123456789abcdef").await.unwrap_err();
    assert!(error.message().contains("12 tokens"), "{error}");
}

#[test]
fn what_is_no_model_is_refused() {
    for (text, reason) in [
        ("", "is empty"),
        ("'a", "has a ' that is not closed"),
        ("http://", "is none"),
        ("https://me:pw@api.test/v1", "has a user or a password"),
    ] {
        let error = Llm::from_text(text).unwrap_err();
        assert!(error.to_string().contains(reason), "{text}: {error}");
    }
}
