//! The codec of all generated services: prost, with two rules of our own.
//!
//! - A large message is decoded where it can't hold up other calls. prost takes some 10 ms per MiB of `Struct`s; a batch
//!   of nodes may have 16 MiB.
//! - Bytes that are no message are the client's mistake (INVALID_ARGUMENT), where tonic's own codec says INTERNAL.

use std::marker::PhantomData;

use prost::Message;
use prost::bytes::Buf;
use tokio::runtime::{Handle, RuntimeFlavor};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// Messages from this size on are decoded aside: about half a millisecond of `Struct`s.
const LARGE: usize = 64 * 1024;

/// Encodes `T`, decodes `U`. Named in `build.rs`.
#[derive(Debug)]
pub struct MessageCodec<T, U>(PhantomData<fn(T) -> U>);

impl<T, U> Default for MessageCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for MessageCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(BufferSettings::default())
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(PhantomData)
    }
}

#[derive(Debug)]
pub struct MessageDecoder<U>(PhantomData<fn() -> U>);

impl<U: Message + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        // Tokio hands this thread's other tasks to another one meanwhile; that takes a runtime with several.
        let aside = buf.remaining() >= LARGE
            && Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        let decoded = if aside { tokio::task::block_in_place(|| U::decode(buf)) } else { U::decode(buf) };
        decoded.map(Some).map_err(|error| Status::invalid_argument(format!("the message can't be read: {error}")))
    }
}
