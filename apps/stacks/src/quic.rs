//! A transfer by a state machine of quinn's form; one text for quinn and its fork noq.

/// Defines `factory`, `names` and `run` for a stack.
macro_rules! quic_stack {
    ($proto:ident, $ours:ident, $node:ident) => {
        use crate::transfer::{Outcome, Test};
        use narrows_testnet::$node::{QuicNode, Transfer};
        use narrows_testnet::{Ended, Network, run as run_network};
        use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
        use std::error::Error;
        use std::net::{IpAddr, SocketAddr};
        use std::sync::Arc;
        use $proto::congestion::ControllerFactory;
        use $proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
        use $proto::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

        type Factory = Arc<dyn ControllerFactory + Send + Sync>;

        /// Its own controllers, then Narrows' that it serves.
        pub fn names() -> Vec<String> {
            let own = OWN.iter().map(|name| (*name).to_string());
            let ours = narrows_congestion::CONTROLLERS.iter().map(|c| c.descriptor.name);
            let ours = ours.filter(|name| $ours::Controllers::new(name).is_ok());
            own.chain(ours.map(String::from)).collect()
        }

        fn factory(name: &str) -> Result<Factory, Box<dyn Error>> {
            match own(name) {
                Some(own) => Ok(own),
                None => Ok(Arc::new($ours::Controllers::new(name)?)),
            }
        }

        fn configs(factory: Factory) -> Result<(ServerConfig, ClientConfig), Box<dyn Error>> {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
            let certificate = CertificateDer::from(made.cert);
            let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
            let mut transport = TransportConfig::default();
            transport.congestion_controller_factory(factory);
            let transport = Arc::new(transport);
            let mut tls = rustls::ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_no_client_auth()
                .with_single_cert(vec![certificate.clone()], key.into())?;
            tls.max_early_data_size = u32::MAX;
            let tls = QuicServerConfig::try_from(tls)?;
            let mut server = ServerConfig::with_crypto(Arc::new(tls));
            server.transport_config(transport.clone());
            let mut roots = rustls::RootCertStore::empty();
            roots.add(certificate)?;
            let tls = rustls::ClientConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13])?
                .with_root_certificates(roots)
                .with_no_client_auth();
            let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
            client.transport_config(transport);
            Ok((server, client))
        }

        /// One transfer, from the first packet of the handshake on.
        pub fn run(controller: &str, test: &Test) -> Result<Outcome, Box<dyn Error>> {
            let (server_config, client_config) = configs(factory(controller)?)?;
            let mut network = Network::new(test.seed);
            let here: SocketAddr = (IpAddr::from([10, 0, 0, 1]), 1000).into();
            let there: SocketAddr = (IpAddr::from([10, 0, 0, 2]), 2000).into();
            let a = network.add_host(&[here.ip()])?;
            let b = network.add_host(&[there.ip()])?;
            let link = network.add_link(a, b, &test.link)?;
            let mut client = endpoint(None, 1);
            let server = endpoint(Some(Arc::new(server_config)), 2);
            let connection = client.connect(network.start(), client_config, there, "localhost")?;
            let mut sender = QuicNode::client(here, client, connection, Transfer::send(test.bytes));
            let mut receiver = QuicNode::server(there, server, Transfer::receive());
            let nodes: &mut [(_, &mut dyn narrows_testnet::Node)] =
                &mut [(a, &mut sender), (b, &mut receiver)];
            let ended = run_network(&mut network, nodes, test.limit);
            let error = sender.application.error.take().or(receiver.application.error.take());
            if let Some(error) = error.or(matches!(ended, Ended::Idle(_)).then(|| "stuck".into())) {
                return Err(error.into());
            }
            let [forward, _] = network.link_counts(link).unwrap_or_default();
            let stats = sender.connection().map(path_stats).unwrap_or_default();
            Ok(Outcome {
                goodput_bps: receiver.application.bytes as f64 * 8.0 / ended.at().as_secs_f64(),
                is_done: ended.is_done(),
                rtt: sender.application.mean_rtt(),
                queueing: forward.mean_queueing(),
                dropped: forward.dropped,
                lost: stats.0,
                sent: stats.1,
            })
        }
    };
}
pub(crate) use quic_stack;
