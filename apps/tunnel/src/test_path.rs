//! A path between a near side and a server, for tests: UDP can be blocked and readdressed; TCP is optional.

use crate::both_ends::{Far, listening_over_both};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::Notify;
use tokio::task::JoinSet;

pub(crate) struct TestPath {
    pub at: SocketAddr,
    is_cut: Arc<AtomicBool>,
    moved: Arc<Notify>,
}

impl TestPath {
    /// A path to this server; TCP is answered only `with_tcp`.
    pub(crate) async fn to(far: &Far, with_tcp: bool) -> TestPath {
        let (listener, front, at) = listening_over_both().await;
        let inside = far.at;
        let is_cut = Arc::new(AtomicBool::new(false));
        let moved = Arc::new(Notify::new());
        if with_tcp {
            tokio::spawn(carry_tcp(listener, inside));
        }
        tokio::spawn(carry(front, inside, is_cut.clone(), moved.clone()));
        TestPath { at, is_cut, moved }
    }

    /// Blocks UDP in both directions from now on, or ends the block.
    pub(crate) fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// From now on the server sees the near side at other ports.
    pub(crate) fn readdress(&self) {
        self.moved.notify_one();
    }
}

/// Forwards each TCP connection to this server.
pub(crate) async fn carry_tcp(listener: TcpListener, inside: SocketAddr) {
    while let Ok((mut tcp, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut far = tokio::net::TcpStream::connect(inside).await?;
            tokio::io::copy_bidirectional(&mut tcp, &mut far).await
        });
    }
}

async fn carry(front: UdpSocket, inside: SocketAddr, is_cut: Arc<AtomicBool>, moved: Arc<Notify>) {
    let front = Arc::new(front);
    let mut backs = HashMap::<SocketAddr, Arc<UdpSocket>>::new();
    let mut tasks = JoinSet::new();
    let mut bytes = [0; 2000];
    loop {
        let (n, from) = tokio::select! {
            received = front.recv_from(&mut bytes) => match received { Ok(received) => received, Err(_) => continue },
            () = moved.notified() => {
                backs.clear();
                tasks.abort_all();
                continue;
            }
        };
        if is_cut.load(Ordering::SeqCst) {
            continue;
        }
        if let Entry::Vacant(free) = backs.entry(from) {
            let back = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
            back.connect(inside).await.unwrap();
            free.insert(back.clone());
            let front = front.clone();
            let is_cut = is_cut.clone();
            tasks.spawn(async move {
                let mut bytes = [0; 2000];
                loop {
                    // The error concerns a server that has ended.
                    let Ok(n) = back.recv(&mut bytes).await else { continue };
                    if !is_cut.load(Ordering::SeqCst) {
                        let _ = front.send_to(&bytes[..n], from).await;
                    }
                }
            });
        }
        let _ = backs[&from].send(&bytes[..n]).await;
    }
}
