//! The blocking form of a stream's halves; `send_stream` and `receive_stream` document the methods.

/// A half of a stream that blocks the calling thread, for programs without a runtime.
#[derive(Debug)]
pub struct Blocking<S>(pub(super) S);

impl<S> Blocking<S> {
    /// Borrows the asynchronous half.
    pub fn get(&mut self) -> &mut S {
        &mut self.0
    }
    /// Returns the asynchronous half.
    pub fn into_inner(self) -> S {
        self.0
    }
}
