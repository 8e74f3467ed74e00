//! Early data at a client: the stream with data in the first packet.

use super::connection::Connection;
use super::receive_stream::ReceiveStream;
use super::send_stream::SendStream;
use super::state::AppConnection;
use crate::error::Error;
use narrows_transport::endpoint::EarlyData;

impl AppConnection {
    /// The first stream has data before the connection is established.
    pub(super) fn begin_early(&mut self, is_finished: bool) {
        self.early = Some(is_finished);
        // The answer may arrive, and the connection end, before the application takes the stream.
        self.streams.begin_reading(EarlyData::STREAM);
        if is_finished {
            self.streams.on_finished(EarlyData::STREAM);
        }
    }
}

impl Connection {
    /// The stream of the early data given to [`ConnectOptions`](super::ConnectOptions), once. It is the same stream
    /// whether the server accepted early data, or the data was sent after the handshake (the server is new or refused
    /// early data). `None` without early data, or if the server permits no stream.
    ///
    /// ```no_run
    /// # use narrows_net::{ConnectOptions, EarlyData, Endpoint, Error};
    /// # use std::net::SocketAddr;
    /// // A repeatable request, such as one that only reads, need not wait for the handshake.
    /// async fn get(client: &Endpoint, server: SocketAddr, to: ConnectOptions) -> Result<Vec<u8>, Error> {
    ///     let request = EarlyData::new(*b"GET /news").expect("at most 512 bytes").finished();
    ///     let connection = client.connect(server, to.with_early_data(request)).await?;
    ///     let (_, mut answer) = connection.early_stream().expect("the server permits a stream");
    ///     answer.receive_all(1 << 20).await
    /// }
    /// ```
    pub fn early_stream(&self) -> Option<(SendStream, ReceiveStream)> {
        let hold = self.hold_arc();
        let id = EarlyData::STREAM;
        let is_finished = {
            let mut core = hold.shared().lock();
            core.any_life(hold.handle)?.early.take()?
        };
        // An ended connection may still hold unread data of the stream.
        if self.hold().look(|machine, _| machine.early_stream()).is_ok_and(|id| id.is_none()) {
            return None;
        }
        let send = match is_finished {
            true => SendStream::finished(hold.clone(), id),
            false => SendStream::new(hold.clone(), id),
        };
        Some((send, ReceiveStream::new(hold, id)))
    }

    /// Whether the server accepted the early data.
    ///
    /// # Errors
    /// The connection is over.
    pub fn early_data_accepted(&self) -> Result<bool, Error> {
        self.hold().look(|machine, _| machine.is_early_taken())
    }
}
