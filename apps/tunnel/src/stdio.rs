//! One connection to a target over the standard streams, as ssh's `ProxyCommand` uses it.

use crate::client::Tunnel;
use crate::pipe;
use crate::request::TunnelRequest;
use narrows_peers::{Error, ErrorKind};
use std::io;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, copy};

/// Copies `input` to the target and the target's bytes to `output`, until the target ends.
///
/// # Errors
/// The target is not reached, or the connection breaks.
pub async fn run(
    tunnel: &Tunnel,
    request: &TunnelRequest,
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> Result<(), Error> {
    let failed = |why: String| Error::new(ErrorKind::Cut, format!("{}: {why}", request.target()));
    let opened = tunnel.open(request).await.map_err(|why| failed(why.to_string()));
    let (_link, (mut send, mut receive)) = opened?;
    // If the connection is over, the calls below detect it.
    let _ = send.set_priority(pipe::FIRST);
    let up = async {
        copy(&mut input, &mut send).await?;
        send.shutdown().await
    };
    let down = async {
        copy(&mut receive, &mut output).await?;
        output.flush().await
    };
    let ended: io::Result<()> = tokio::select! {
        ended = down => ended,
        Err(e) = up => Err(e),
    };
    ended.map_err(|e| failed(e.to_string()))
}
