//! The module's exports and imports: a text in, a text out.
#![allow(unsafe_code)]

use crate::own;
use std::cell::RefCell;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
}

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Calls a method of the reader's controller; its arguments and results are in [`own_values`].
    safe fn own(call: u32, object: u32) -> u32;
    /// Passes the message of a panic, before the module traps.
    fn panicked(text: *const u8, bytes: usize);
}

/// To be called once, first.
#[unsafe(no_mangle)]
extern "C" fn start() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // SAFETY: the text lives until the call returns, and the page only reads it.
        unsafe { panicked(text.as_ptr(), text.len()) };
    }));
    own::set_call(own);
    // Fails only if a list has been read before.
    let _ = narrows_printed::add(narrows_sim::Registry::new()).install();
}

/// Room for a request of this many bytes of UTF-8.
#[unsafe(no_mangle)]
extern "C" fn input(bytes: usize) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        input.clear();
        input.resize(bytes, 0);
        input.as_mut_ptr()
    })
}

/// Answers the request in the input; returns the bytes of the output.
#[unsafe(no_mangle)]
extern "C" fn ask() -> usize {
    let request = INPUT.take();
    let answer = crate::handle(&String::from_utf8_lossy(&request));
    OUTPUT.with_borrow_mut(|output| {
        *output = answer;
        output.len()
    })
}

/// The last answer.
#[unsafe(no_mangle)]
extern "C" fn output() -> *const u8 {
    OUTPUT.with_borrow(|text| text.as_ptr())
}

/// Arguments and results of calls of the reader's controller: [`own::VALUES`] numbers of 64 bits.
#[unsafe(no_mangle)]
extern "C" fn own_values() -> *const u64 {
    own::values().as_ptr().cast()
}
