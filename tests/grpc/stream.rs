//! ScheduleStream: order, marks, and errors that are answers.

use berth::api::pb;
use pb::Outcome;
use pb::schedule_stream_response::Result as Answer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};

use crate::support::*;

pub(crate) struct Stream {
    pub requests: mpsc::Sender<pb::ScheduleStreamRequest>,
    pub answers: Streaming<pb::ScheduleStreamResponse>,
}

impl Stream {
    pub(crate) async fn open(berth: &Berth) -> Self {
        let (requests, outbound) = mpsc::channel(64);
        let answers = within(berth.scheduler().schedule_stream(ReceiverStream::new(outbound))).await.unwrap();
        Self { requests, answers: answers.into_inner() }
    }

    pub(crate) async fn send(&self, id: &str, request: Option<pb::ScheduleRequest>) {
        within(self.requests.send(pb::ScheduleStreamRequest { request, id: id.into() })).await.unwrap();
    }

    pub(crate) async fn answer(&mut self) -> Result<Option<(String, Answer)>, Status> {
        let message = within(self.answers.message()).await?;
        Ok(message.map(|message| (message.id, message.result.unwrap())))
    }

    pub(crate) async fn response(&mut self) -> (String, pb::ScheduleResponse) {
        match self.answer().await.unwrap().unwrap() {
            (id, Answer::Response(response)) => (id, response),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn answers_come_in_order_and_each_sees_the_room_of_those_before() {
    let berth = Berth::with_nodes(&[node("n1", "2"), node("n2", "2")]).await;
    let mut stream = Stream::open(&berth).await;
    for i in 0..5 {
        stream.send(&format!("mark-{i}"), Some(ask(&pod(&format!("p{i}"), "1")))).await;
    }
    let mut placed = 0;
    for i in 0..5 {
        let (id, response) = stream.response().await;
        assert_eq!(id, format!("mark-{i}"));
        placed += usize::from(response.outcome() == Outcome::Placed);
    }
    assert_eq!(placed, 4);
    drop(stream.requests);
    let mut answers = stream.answers;
    assert!(within(answers.message()).await.unwrap().is_none(), "the stream ends well");
}

#[tokio::test]
async fn an_error_is_an_answer_and_the_stream_goes_on() {
    let berth = Berth::with_nodes(&[node("n1", "2")]).await;
    let mut stream = Stream::open(&berth).await;
    stream.send("a", Some(ask(&pod("a", "1")))).await;
    stream.send("b", Some(ask(&pod("b", "1x")))).await;
    stream.send("c", None).await;
    stream.send("d", Some(pb::ScheduleRequest { profile: "nope".into(), ..ask(&pod("d", "1")) })).await;
    stream.send("e", Some(ask(&pod("e", "1")))).await;
    assert_eq!(stream.response().await.1.node, "n1");
    for (mark, code, field) in [
        ("b", Code::InvalidArgument, "spec.containers[0].resources.requests[cpu]"),
        ("c", Code::InvalidArgument, "request"),
        ("d", Code::NotFound, ""),
    ] {
        let (id, Answer::Error(error)) = stream.answer().await.unwrap().unwrap() else { panic!("an error") };
        assert_eq!((id.as_str(), error.code), (mark, code as i32));
        assert_eq!(error.violations.first().map_or("", |v| v.field.as_str()), field);
        assert!(!error.message.is_empty());
    }
    let (id, response) = stream.response().await;
    assert_eq!((id.as_str(), response.node.as_str()), ("e", "n1"));
}

#[tokio::test]
async fn many_requests_may_be_on_their_way_before_the_first_answer_is_read() {
    const MANY: usize = 3_000;
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut stream = Stream::open(&berth).await;
    let requests = stream.requests.clone();
    let sender = tokio::spawn(async move {
        for i in 0..MANY {
            let request = Some(pb::ScheduleRequest { dry_run: true, ..ask(&pod(&format!("p{i}"), "1")) });
            requests.send(pb::ScheduleStreamRequest { request, id: i.to_string() }).await.unwrap();
        }
    });
    for i in 0..MANY {
        assert_eq!(stream.response().await.0, i.to_string());
    }
    within(sender).await.unwrap();
}

#[tokio::test]
async fn a_message_over_the_limit_ends_the_stream_with_what_the_protocol_promises() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut stream = Stream::open(&berth).await;
    stream.send("a", Some(ask(&pod("a", "1")))).await;
    let json = pb::pod_source::Source::ManifestJson(vec![b' '; 17 << 20]);
    let pod = Some(pb::PodSource { source: Some(json) });
    stream.send("b", Some(pb::ScheduleRequest { pod, ..Default::default() })).await;
    assert_eq!(stream.response().await.0, "a");
    assert_eq!(stream.answer().await.unwrap_err().code(), Code::ResourceExhausted);
}
