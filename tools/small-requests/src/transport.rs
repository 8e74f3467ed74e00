//! What the rows ask of a transport, and what a server does with any of them.

use std::future::Future;
use std::net::SocketAddr;

pub type Error = Box<dyn std::error::Error + Send + Sync>;
pub type Result<T> = std::result::Result<T, Error>;

/// A connection of either transport.
pub trait Connection: Clone + Send + Sync + 'static {
    /// Sends `data` on a new stream of both directions and reads the answer to its end.
    fn request(&self, data: &[u8]) -> impl Future<Output = Result<usize>> + Send;
    /// Answers the next stream of both directions with what came on it. The stream is accepted here
    /// and answered in a task of its own.
    fn answer_request(&self) -> impl Future<Output = Result<()>> + Send;
    /// Sends so many times `data` on a new stream of one direction.
    fn send(&self, data: &[u8], times: usize) -> impl Future<Output = Result<()>> + Send;
    /// Reads the next stream of one direction to its end, and throws it away.
    fn read(&self) -> impl Future<Output = Result<usize>> + Send;
    /// Sends an unreliable message.
    fn send_message(&self, message: &[u8]) -> Result<()>;
    /// The next message.
    fn message(&self) -> impl Future<Output = Result<usize>> + Send;
    /// Datagrams that this end has sent.
    fn datagrams(&self) -> u64;
    /// Closes it and waits until that has ended here.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// A client or a server.
pub trait Endpoint: Send + Sync + Sized + 'static {
    type Connection: Connection;
    /// What a client must know of a server.
    type Identity: Clone + Send + Sync + 'static;
    /// A server on a free port of loopback. Called in the runtime that drives it, as are all others.
    fn server() -> Result<(Self, SocketAddr, Self::Identity)>;
    fn client(identity: Self::Identity) -> Result<Self>;
    fn connect(&self, to: SocketAddr) -> impl Future<Output = Result<Self::Connection>> + Send;
    fn accept(&self) -> impl Future<Output = Result<Self::Connection>> + Send;
}

/// Answers everything for ever.
pub async fn serve<E: Endpoint>(endpoint: E) -> Result<()> {
    loop {
        let connection = endpoint.accept().await?;
        let requested = connection.clone();
        tokio::spawn(async move { while requested.answer_request().await.is_ok() {} });
        let streamed = connection.clone();
        tokio::spawn(async move {
            while streamed.read().await.is_ok() && streamed.send(b"!", 1).await.is_ok() {}
        });
        tokio::spawn(async move {
            let mut message = [7; 1200];
            while let Ok(length) = connection.message().await {
                let Some(echo) = message.get_mut(..length) else { break };
                if connection.send_message(echo).is_err() {
                    break;
                }
            }
        });
    }
}
