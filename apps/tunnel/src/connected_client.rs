//! A connected client, for the handlers of its requests.

use crate::flow::{FlowTarget, UdpFlows};
use crate::limits::ClientUsage;
use crate::request::Refusal;
use crate::shared::{TunnelEvent, TunnelShared};
use narrows_net::{Connection, SendStream};
use narrows_wire::noise::PublicKey;
use std::sync::Arc;
use std::time::Instant;

/// A client after its handshake, with its flows.
pub(crate) struct ConnectedClient {
    pub shared: Arc<TunnelShared>,
    pub client: Arc<ClientUsage>,
    pub connection: Connection,
    pub key: PublicKey,
    /// The beginning of the key, for log lines.
    pub name: String,
    pub flows: Arc<UdpFlows<FlowTarget>>,
}

impl ConnectedClient {
    pub fn log(&self, is_warning: bool, what: &str) {
        self.event(is_warning, what, None);
    }

    /// Logs and counts a refused request.
    pub fn log_refusal(&self, what: &str, refusal: Refusal) {
        self.event(true, &format!("{what}: {refusal}"), Some(refusal));
    }

    /// Logs a connection to one of the client's ports, which any host may open: few lines, with the number of all
    /// connections. Counts a refusal.
    pub fn log_stranger(&self, is_warning: bool, what: &str, refusal: Option<Refusal>) {
        let line = self.shared.strangers.count(Instant::now(), 1).map(|count| match count {
            1 => self.line(what),
            _ => self.line(&format!("{what} ({count} connections since the last line)")),
        });
        if line.is_some() || refusal.is_some() {
            let client = self.name.clone();
            (self.shared.log)(&TunnelEvent { is_warning, client, line, refusal });
        }
    }

    fn line(&self, what: &str) -> String {
        let from = self.connection.remote().map_or("?".into(), |a| a.to_string());
        format!("{} ({from}): {what}", self.name)
    }

    pub fn event(&self, is_warning: bool, what: &str, refusal: Option<Refusal>) {
        let line = Some(self.line(what));
        (self.shared.log)(&TunnelEvent { is_warning, client: self.name.clone(), line, refusal });
    }
}

/// Sends the reason; the request's stream is stopped when it is dropped.
pub(crate) async fn refuse(send: &mut SendStream, refusal: Refusal) {
    // If the client is gone, the answer is of no use.
    let _ = send.send_last(&[refusal.code()]).await;
}
