//! Bytes in bulk through a stream, and the runtime that both ends use.

use narrows_net::{Error, ReceiveStream, SendStream};
use std::cell::RefCell;
use std::future::poll_fn;
use tokio::runtime::{Builder, Runtime};
use tokio::task::coop::consume_budget;

/// Bytes of a write, and of a read at most.
const BLOCK: usize = 256 << 10;
/// The transferred data.
static DATA: [u8; BLOCK] = [0x5a; BLOCK];
/// Bytes of a receiver's tally: bytes received in order, nanoseconds.
pub const TALLY: usize = 16;
/// One thread for all connections of an end: the work between two waits is short.
pub fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// Sends `bytes` bytes of test data.
pub async fn send_bytes(send: &mut SendStream, bytes: u64) -> Result<(), Error> {
    let mut left = bytes;
    while left > 0 {
        let n = left.min(BLOCK as u64) as usize;
        send.send_all(DATA.get(..n).unwrap_or_default()).await?;
        left -= n as u64;
        consume_budget().await;
    }
    Ok(())
}

/// Reads and discards the available data. Returns its length, 0 at the end.
pub async fn receive_some(receive: &mut ReceiveStream) -> Result<usize, Error> {
    thread_local! {
        /// One for all connections, so that it stays in the processor's cache.
        static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; BLOCK]);
    }
    consume_budget().await;
    poll_fn(|context| BUFFER.with_borrow_mut(|b| receive.poll_receive(context, b))).await
}
