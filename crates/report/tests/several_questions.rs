//! A slow question of the explorer's page holds up no other one.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
    time::Duration,
};

use headlight_heads::{Ablation, HeadName};
use headlight_report::{
    Answer, Bytes, CircuitData, CircuitOfPairs, Explorer, ExplorerFacts, Question, Sweep,
    SweepQuestion, WalkData, WhyData, WhyQuestion, Writing, WritingQuestion, serve,
};
use headlight_run::Error;

/// Longer than anything takes that does not hang.
const FOREVER: Duration = Duration::from_mins(1);

/// Answers a prompt only after somebody asked for a sample.
struct Slow {
    begun: Mutex<Sender<()>>,
    sampled: Mutex<Sender<()>>,
    wait: Mutex<Receiver<()>>,
}

impl Explorer for Slow {
    fn facts(&self) -> ExplorerFacts {
        ExplorerFacts {
            name: "slow".to_owned(),
            task: "repeat".to_owned(),
            heads: Vec::new(),
            chosen: None,
            most_tokens: 1,
            some_tokens: Vec::new(),
            sites: Vec::new(),
            sweeps: Vec::new(),
            edges: None,
            window: None,
            prompt: "a".to_owned(),
            ablations: Vec::new(),
            by: Ablation::Mean,
        }
    }

    fn sample(&self, _row: usize) -> String {
        self.sampled.lock().unwrap().send(()).unwrap();
        "a".to_owned()
    }

    fn explore(&self, question: &Question) -> Result<Answer, Error> {
        self.begun.lock().unwrap().send(()).unwrap();
        let waited = self.wait.lock().unwrap().recv_timeout(FOREVER);
        waited.map_err(|_| Error::new("prompt", "nobody asked for a sample meanwhile"))?;
        Ok(Answer {
            tokens: vec![question.prompt.clone()],
            predictions: Vec::new(),
            untouched: Vec::new(),
            right: Vec::new(),
            right_untouched: Vec::new(),
        })
    }

    fn patterns(&self, _: &Question, _: &[HeadName]) -> Result<Vec<(HeadName, Bytes)>, Error> {
        Err(Error::new("heads", "there is no such head"))
    }

    fn walk(&self, _: &Question, head: HeadName) -> Result<WalkData, Error> {
        Err(Error::new("head", "there is no such head").value(head))
    }

    fn circuit(&self, _: &CircuitOfPairs) -> Result<CircuitData, Error> {
        Err(Error::new("model", "there are no edges"))
    }

    fn why(&self, question: &WhyQuestion) -> Result<WhyData, Error> {
        Err(Error::new("head", "there is no such head").value(question.head))
    }

    fn sweep(&self, question: &SweepQuestion) -> Result<Sweep, Error> {
        Err(Error::new("place", "is not in this model").value(&question.place))
    }

    fn write(&self, _: &WritingQuestion) -> Result<Writing, Error> {
        panic!("this explorer does not write");
    }
}

/// Status and body of what the server answers.
fn ask(address: SocketAddr, path: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), body.to_owned())
}

#[test]
fn a_question_is_answered_while_a_slow_one_waits_and_a_panic_ends_no_other() {
    let ((begun, has_begun), (sampled, wait)) = (channel(), channel());
    let slow = Slow {
        begun: Mutex::new(begun),
        sampled: Mutex::new(sampled),
        wait: Mutex::new(wait),
    };
    let (ready, is_ready) = channel();
    thread::spawn(move || serve(Arc::new(slow), 0, |address| ready.send(address).unwrap()));
    let address = is_ready.recv_timeout(FOREVER).unwrap();

    let waiting = thread::spawn(move || ask(address, "/explore", r#"{"prompt":"a"}"#));
    has_begun.recv_timeout(FOREVER).unwrap();
    let writing = r#"{"question":{"prompt":"a"},"tokens":1,"temperature":0,"seed":0}"#;
    assert_eq!(ask(address, "/write", writing).0, 500);
    let sweep = r#"{"prompt":"a","place":"nowhere","direction":"lost"}"#;
    let (status, refused) = ask(address, "/sweep", sweep);
    assert!(
        status == 422 && refused.contains(r#""field":"place""#),
        "{status} {refused}"
    );
    assert_eq!(
        ask(address, "/sample", r#"{"row":0}"#),
        (200, r#""a""#.to_owned())
    );
    let (status, answer) = waiting.join().unwrap();
    assert!(
        status == 200 && answer.contains(r#""tokens":["a"]"#),
        "{status} {answer}"
    );
}
