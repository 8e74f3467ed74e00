#[test] fn sizes(){ 
 println!("node {} flow {} sender {} receiver {} app {} link {}", size_of::<crate::network::Node>(), size_of::<crate::flow::Flow>(), size_of::<narrows_flow::tcp::Sender>(), size_of::<narrows_flow::tcp::Receiver>(), size_of::<crate::flow::Application>(), size_of::<narrows_path::Link<narrows_base::Packet>>());
}
