//! A FIFO of tasks that wait for one item each: a message, a stream opened by the peer. As many tasks are woken as
//! there are items, the longest-waiting first; waking all would be in vain for most.
//!
//! If the future of a woken task is dropped, its turn passes to the next task: [`Ticket::leave`].

use std::collections::VecDeque;
use std::task::Waker;

/// The waiting tasks.
#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    /// In order of tickets.
    waiting: VecDeque<(u64, Waker)>,
    next: u64,
}

/// One task's place in a queue.
#[derive(Debug, Default)]
pub(super) struct Ticket(Option<u64>);

impl WaitQueue {
    fn find(&self, ticket: u64) -> Option<usize> {
        // Woken tasks were removed, and their tickets are lower than all others.
        if self.waiting.front().is_none_or(|first| ticket < first.0) {
            return None;
        }
        self.waiting.binary_search_by_key(&ticket, |waiting| waiting.0).ok()
    }

    /// Joins the queue, or updates the waker and keeps the place.
    pub fn wait(&mut self, ticket: &mut Ticket, waker: &Waker) {
        let place = ticket.0.and_then(|number| self.find(number));
        if let Some((_, known)) = place.and_then(|place| self.waiting.get_mut(place)) {
            if !known.will_wake(waker) {
                known.clone_from(waker);
            }
            return;
        }
        ticket.0 = Some(self.next);
        self.waiting.push_back((self.next, waker.clone()));
        self.next += 1;
    }

    /// Removes the first `max` tasks and adds their wakers to `woken`.
    pub fn release(&mut self, max: usize, woken: &mut Vec<Waker>) {
        let count = max.min(self.waiting.len());
        woken.extend(self.waiting.drain(..count).map(|waiting| waiting.1));
    }
}

impl Ticket {
    /// Leaves the queue. True if the task had been woken: if it took no item, the next task must be woken.
    pub fn leave(&mut self, queue: &mut WaitQueue) -> bool {
        let Some(number) = self.0.take() else { return false };
        match queue.find(number) {
            Some(place) => {
                queue.waiting.remove(place);
                false
            }
            None => true,
        }
    }

    /// Whether it has no place in the queue.
    pub fn is_unused(&self) -> bool {
        self.0.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);
    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_item_wakes_one_waiter_and_leavers_pass_on() {
        let tasks: Vec<Arc<CountingWaker>> = (0..3).map(|_| Arc::default()).collect();
        let woken = |n: usize| tasks[n].0.load(Ordering::Relaxed);
        let mut tickets: [Ticket; 3] = Default::default();
        let mut queue = WaitQueue::default();
        for _ in 0..2 {
            // A second poll keeps the place.
            for (ticket, task) in tickets.iter_mut().zip(&tasks) {
                queue.wait(ticket, &task.clone().into());
            }
        }
        let mut list = Vec::new();
        queue.release(1, &mut list);
        list.drain(..).for_each(Waker::wake);
        assert_eq!([woken(0), woken(1), woken(2)], [1, 0, 0]);
        // The second task leaves while it waits, the first after it was woken.
        assert!(!tickets[1].leave(&mut queue));
        assert!(tickets[0].leave(&mut queue));
        assert!(tickets[0].is_unused() && !tickets[0].leave(&mut queue));
        queue.release(9, &mut list);
        list.drain(..).for_each(Waker::wake);
        assert_eq!([woken(0), woken(1), woken(2)], [1, 0, 1]);
    }
}
