//! A state machine of quinn's form as a protocol of the simulator; one text for quinn and its fork noq.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes of a full datagram that are not the application's: 11 of a short header, 16 of a tag, 8 of a stream frame.
pub(crate) const OVERHEAD: u32 = 35;
/// Unacknowledged bytes that a sender may keep. The stacks' default of 10 MB would limit the largest networks.
pub(crate) const SEND_WINDOW: u64 = 64 << 20;

/// Address of the sender.
pub const SENDER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1000);
/// Address of the receiver.
pub const RECEIVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2000);

/// Defines `names`, `entries` and `nodes` for a stack.
macro_rules! quic_stack {
    ($proto:ident, $ours:ident, $node:ident) => {
        use crate::quic::{OVERHEAD, RECEIVER, SEND_WINDOW, SENDER};
        use narrows_sim::endpoints::foreign::{ForeignEnd, ForeignEntry};
        use narrows_testnet::Node;
        use narrows_testnet::simulated::SimulatedNode;
        use narrows_testnet::$node::{Application, QuicNode, Transfer};
        use rustls::client::Resumption;
        use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
        use std::error::Error;
        use std::sync::{Arc, OnceLock};
        use std::time::Instant;
        use $proto::congestion::ControllerFactory;
        use $proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $proto::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

        type Factory = Arc<dyn ControllerFactory + Send + Sync>;

        /// Configurations that all connections share.
        static TLS: OnceLock<(Arc<QuicServerConfig>, Arc<QuicClientConfig>)> = OnceLock::new();
        const OURS: &str = concat!(stringify!($node), "+");

        /// Its own controllers, then Narrows' that it serves.
        pub fn names() -> Vec<String> {
            let ours = narrows_congestion::CONTROLLERS.iter().map(|c| c.descriptor.name);
            let ours = ours.filter(|name| $ours::Controllers::new(name).is_ok());
            let own = OWN.iter().map(|name| (*name).to_string());
            own.chain(ours.map(|name| format!("{OURS}{name}"))).collect()
        }

        /// The protocols.
        ///
        /// # Errors
        /// TLS cannot be configured.
        pub fn entries() -> Result<Vec<ForeignEntry>, Box<dyn Error>> {
            let configured = tls()?;
            TLS.get_or_init(|| configured);
            // Leaked once per process.
            let entry = |name| ForeignEntry { name: String::leak(name), build: ends };
            Ok(names().into_iter().map(entry).collect())
        }

        fn tls() -> Result<(Arc<QuicServerConfig>, Arc<QuicClientConfig>), Box<dyn Error>> {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
            let certificate = CertificateDer::from(made.cert);
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let server = rustls::ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_no_client_auth()
                .with_single_cert(vec![certificate.clone()], key.into())?;
            let mut roots = rustls::RootCertStore::empty();
            roots.add(certificate)?;
            let mut client = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_root_certificates(roots)
                .with_no_client_auth();
            // Connections must not depend on each other.
            client.resumption = Resumption::disabled();
            let server = QuicServerConfig::try_from(server)?;
            Ok((Arc::new(server), Arc::new(QuicClientConfig::try_from(client)?)))
        }

        /// Sender and receiver of a connection under the controller of this name, at [`SENDER`] and [`RECEIVER`].
        ///
        /// # Panics
        /// No protocol has this name, or [`entries`] was not called.
        pub fn nodes<A: Application>(
            name: &str,
            seed: u64,
            made: Instant,
            sends: A,
        ) -> (QuicNode<A>, QuicNode<Transfer>) {
            let factory = match name.strip_prefix(OURS) {
                None => own(name),
                Some(ours) => $ours::Controllers::new(ours)
                    .map_or_else(|e| panic!("{e}"), |ours| Arc::new(ours.with_seed(seed))),
            };
            let (server_tls, client_tls) = TLS.get().expect("entries() was called");
            let mut transport = TransportConfig::default();
            transport.congestion_controller_factory(factory);
            transport.send_window(SEND_WINDOW);
            let transport = Arc::new(transport);
            let mut server = ServerConfig::with_crypto(server_tls.clone());
            server.transport_config(transport.clone());
            let mut client = ClientConfig::new(client_tls.clone());
            client.transport_config(transport);
            let random = |end: u8| {
                let mut bytes = [end; 32];
                bytes[..8].copy_from_slice(&seed.to_le_bytes());
                bytes
            };
            let mut sender = endpoint(None, random(1));
            let begun = sender.connect(made, client, RECEIVER, "localhost").expect("a valid name");
            let sender = QuicNode::client(SENDER, sender, begun, sends);
            let receiver = endpoint(Some(Arc::new(server)), random(2));
            (sender, QuicNode::server(RECEIVER, receiver, Transfer::receive()))
        }

        fn ends(name: &str, seed: u64) -> [Box<dyn ForeignEnd>; 2] {
            let made = Instant::now();
            let (sender, receiver) = nodes(name, seed, made, Transfer::open());
            let end = |node: Box<dyn Node + Send>, local, peer| -> Box<dyn ForeignEnd> {
                Box::new(SimulatedNode::new(node, local, peer, made, OVERHEAD))
            };
            [end(Box::new(sender), SENDER, RECEIVER), end(Box::new(receiver), RECEIVER, SENDER)]
        }
    };
}
pub(crate) use quic_stack;
