//! The blocking form of a stream's halves; `send_stream` and `receive_stream` say what it does.

/// A half of a stream that blocks the calling thread, for programs without a runtime.
#[derive(Debug)]
pub struct Blocking<S>(pub(super) S);

impl<S> Blocking<S> {
    /// The asynchronous half, by reference.
    pub fn get(&mut self) -> &mut S {
        &mut self.0
    }
    /// The asynchronous half.
    pub fn into_inner(self) -> S {
        self.0
    }
}
