//! What goes for all services: size limit, compression, reflection, health, the end.

use berth::api::{pb, server};
use pb::scheduler_service_client::SchedulerServiceClient;
use serde_json::json;
use tokio_stream::once;
use tonic::Code;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt;

use crate::support::*;

fn blanks(bytes: usize) -> pb::ScheduleRequest {
    let source = Some(pb::pod_source::Source::ManifestJson(vec![b' '; bytes]));
    pb::ScheduleRequest { pod: Some(pb::PodSource { source }), ..Default::default() }
}

#[tokio::test]
async fn a_request_over_the_limit_is_resource_exhausted() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let status = berth.schedule(blanks(server::MAX_REQUEST_BYTES + 1)).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    assert_eq!(status.get_details_error_info().unwrap().reason, "MESSAGE_TOO_LARGE");
    assert!(status.message().contains("16 MiB"), "{status}");
    // Small on the way, and too large after it.
    let mut compressing = berth.scheduler().send_compressed(Gzip);
    let status = within(compressing.schedule(blanks(server::MAX_REQUEST_BYTES + 1))).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    // Within the limit, but more than an object may have.
    let status = within(compressing.schedule(blanks(15 << 20))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}

#[tokio::test]
async fn requests_and_answers_may_be_compressed() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut client = berth.scheduler().send_compressed(Gzip).accept_compressed(Gzip);
    let response = within(client.schedule(ask(&pod("p", "1")))).await.unwrap();
    assert_eq!(response.metadata().get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(response.into_inner().node, "n1");
    let plain = within(berth.scheduler().schedule(ask(&pod("p", "1")))).await.unwrap();
    assert!(plain.metadata().get("grpc-encoding").is_none());
    let mut feed = berth.feed().send_compressed(Gzip).accept_compressed(Gzip);
    let batch = pb::UpdateNodesRequest { events: vec![node_manifest(&node("n2", "1"))], ..Default::default() };
    let mut acks = within(feed.update_nodes(once(batch))).await.unwrap().into_inner();
    assert_eq!(within(acks.message()).await.unwrap().unwrap().ack.unwrap().applied, 1);
}

#[tokio::test]
async fn nesting_beyond_what_can_be_read_is_the_clients_mistake() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "a": inner }));
    let status = berth.schedule(ask(&deep)).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
}

macro_rules! lists_services {
    ($name:ident, $version:ident) => {
        #[tokio::test]
        async fn $name() {
            use pb::server_reflection_client::ServerReflectionClient;
            use pb::server_reflection_request::MessageRequest;
            use pb::server_reflection_response::MessageResponse;
            use tonic_reflection::pb::$version as pb;
            let berth = Berth::start().await;
            let ask = async |request| {
                let request = pb::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
                let mut client = ServerReflectionClient::new(berth.channel.clone());
                let mut answers = within(client.server_reflection_info(once(request))).await.unwrap().into_inner();
                within(answers.message()).await.unwrap().unwrap().message_response.unwrap()
            };
            let MessageResponse::ListServicesResponse(list) = ask(MessageRequest::ListServices(String::new())).await
            else {
                panic!("a list")
            };
            let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
            for name in server::SERVICES.into_iter().chain([
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
            ]) {
                assert!(names.contains(&name), "{name} is not in {names:?}");
            }
            for symbol in ["berth.v1.PodSpec", "google.rpc.BadRequest", "grpc.health.v1.Health"] {
                let answer = ask(MessageRequest::FileContainingSymbol(symbol.into())).await;
                assert!(matches!(answer, MessageResponse::FileDescriptorResponse(_)), "{symbol}: {answer:?}");
            }
        }
    };
}

lists_services!(reflection_v1_knows_all_services, v1);
lists_services!(reflection_v1alpha_knows_all_services, v1alpha);

#[tokio::test]
async fn health_follows_readiness() {
    let berth = Berth::start().await;
    let health = HealthClient::new(berth.channel.clone());
    let of = |service: &str| HealthCheckRequest { service: service.into() };
    let check = async |service: &str| within(health.clone().check(of(service))).await.unwrap().into_inner().status();
    let mut watch = within(health.clone().watch(of("berth.v1.SchedulerService"))).await.unwrap().into_inner();
    let mut next = async || within(watch.message()).await.unwrap().map(|answer| answer.status());
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    assert_eq!(check("").await, ServingStatus::NotServing);
    assert_eq!(check("berth.v1.EvictionService").await, ServingStatus::NotServing);
    // What makes Berth ready has to be reachable before.
    assert_eq!(check("berth.v1.FeedService").await, ServingStatus::Serving);
    assert_eq!(check("berth.v1.InspectService").await, ServingStatus::Serving);

    berth.feed_nodes(vec![node_manifest(&node("n1", "1"))]).await;
    assert_eq!(next().await, Some(ServingStatus::Serving));
    assert_eq!(check("").await, ServingStatus::Serving);
    // It is told after the one that was watched.
    eventually(async || check("berth.v1.EvictionService").await == ServingStatus::Serving).await;

    // A source that says hello means to send all there is.
    let mut stream = NodeStream::open(&berth).await;
    stream.control(1, hello("informer")).await;
    assert_eq!(next().await, Some(ServingStatus::NotServing));
    let unknown = within(health.clone().check(of("nope"))).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
}

#[tokio::test]
async fn a_server_that_stops_ends_streams_and_tells_why() {
    let berth = Berth::with_nodes(&[node("n1", "1")]).await;
    let mut nodes = NodeStream::open(&berth).await;
    nodes.send(pb::UpdateNodesRequest { events: vec![node_manifest(&node("n2", "1"))], ..Default::default() }).await;
    assert_eq!(nodes.ack().await.unwrap().applied, 1);
    let (requests, outbound) = tokio::sync::mpsc::channel(1);
    let outbound = tokio_stream::wrappers::ReceiverStream::new(outbound);
    let mut answers = within(berth.scheduler().schedule_stream(outbound)).await.unwrap().into_inner();
    let mut health = HealthClient::new(berth.channel.clone());
    let mut watch = within(health.watch(HealthCheckRequest { service: String::new() })).await.unwrap().into_inner();
    assert_eq!(within(watch.message()).await.unwrap().unwrap().status(), ServingStatus::Serving);

    let addr = berth.addr;
    berth.stop().await;
    assert_eq!(nodes.ack().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(within(answers.message()).await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(within(watch.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    let gone = berth::api::client::connect(&addr.to_string()).await.unwrap_err().to_string();
    assert!(gone.contains("berth serve"), "{gone}");
    drop(requests);
}

#[tokio::test]
async fn clients_with_the_default_limits_can_read_the_longest_errors() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let mut wrong = pod("p", "1");
    wrong["spec"]["tolerations"] = (0..2_000).map(|i| json!({ "operator": format!("Ünknown-{i}") })).collect();
    let endpoint = Endpoint::from_shared(format!("http://{}", berth.addr)).unwrap().http2_max_header_list_size(8_192);
    let mut client = SchedulerServiceClient::new(endpoint.connect().await.unwrap());
    let status = within(client.schedule(ask(&wrong))).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status}");
    let violations = status.get_details_bad_request().unwrap().field_violations;
    assert!(violations.last().unwrap().description.contains("further mistakes"));
}

#[tokio::test]
async fn a_stream_with_a_deadline_ends_with_it() {
    let berth = Berth::with_nodes(&[node("n1", "4")]).await;
    let (_requests, outbound) = tokio::sync::mpsc::channel(1);
    let mut request = tonic::Request::new(tokio_stream::wrappers::ReceiverStream::new(outbound));
    request.set_timeout(std::time::Duration::from_secs(1));
    let mut answers = within(berth.scheduler().schedule_stream(request)).await.unwrap().into_inner();
    assert_eq!(within(answers.message()).await.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn an_address_that_is_none_is_said_to_be() {
    for addr in ["", "localhost", "localhost:many", ":1", "a b:1"] {
        let error = berth::api::client::connect(addr).await.unwrap_err().to_string();
        assert!(error.contains("HOST:PORT"), "{addr}: {error}");
    }
}
