//! How much memory a piece of work takes.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, and beside it what this thread holds and held at most.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends may still free: what it holds is no longer asked for.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(held.get())));
    });
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe to write; this one hands everything on to the system's"
)]
// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { System.alloc_zeroed(layout) }
    }

    // What grows may lie in two places for a moment.
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize);
        let moved = unsafe { System.realloc(pointer, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Does the work; how many bytes this thread held more, at most, while it was done.
pub fn most_held_during(work: impl FnOnce()) -> usize {
    let before = HELD.get();
    MOST.set(before);
    work();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}

#[test]
fn the_most_that_was_held_is_counted() {
    let most = most_held_during(|| {
        drop(vec![0_u8; 5000]);
        let mut grown = vec![0_u8; 1000];
        grown.reserve_exact(2000);
        assert_eq!(grown.len(), 1000);
    });
    assert_eq!(most, 5000);
}
